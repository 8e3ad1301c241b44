"""Pages, and every other HTML that a person looks at: values of the rooms before this one,
rendered. For the one-file report, which needs no web framework: `rendering`
(wording, figures with their uncertainty, templates), `texts` (Markdown and differences),
`html_report`, `html_report_pairs`. For the server: `page` (what a page is), then one
module a page, and `routes`, which lists them.
"""
