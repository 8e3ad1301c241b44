"""What people read, rendered.

- `terminal`: texts and tables on a terminal, or in a pipe
- `labels`: the texts of charts and notebooks, names on one line, and how wide a text is
- `chart_rows`: the figures that a chart draws, as rows and as CSV
- `leaderboard`: a ranking on one scale
- `svg`: drawings that stand alone, of the macros and colours that pages draw with
- `charts`: the charts of a report, a ranking and a calibration, and their files
- `reasons`: why a verdict came out as it did, in a line
- `html`: pages and the report in one file
- `notebook`: what a notebook shows of a value
"""
