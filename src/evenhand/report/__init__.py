"""What is stored, as plain values, then the forms they are given. Values: `lookup`, `run`,
`records`, `win_rates`, `abstentions`, `families`, `claims`, `conclusions`, `requirements`, `gate`,
`ranked_verdicts`, `ranking`, `matching`, `diff`, `overview`. Forms: `files`, `export`, `charts`;
text and HTML are made in `cli` and `serve`.
"""
