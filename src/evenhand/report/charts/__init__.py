"""Charts of reports: figures as rows (`data`), their texts (`labels`), the charts (`style`,
`intervals`, `rates`, `rankings`, `reliability`, which load Altair), and `drawing`, which
everybody else imports.
"""
