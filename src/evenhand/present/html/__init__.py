"""HTML that a person looks at, served or in a file: it needs no web framework.

- `rendering`: figures with their uncertainty, labels, a template and its values
- `texts`: Markdown that can do nothing, and what differs between two texts
- `figures`: what pages of a run and its HTML file show alike
- `one_file`, `one_file_pairs`: a run as one HTML file, and the pairs in it
"""
