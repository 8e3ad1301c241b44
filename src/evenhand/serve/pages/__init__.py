"""Pages of the server: `page` (what a page is), then one module a page, and `routes`, which lists
them. What they render is in `present.html`, as far as the one-file report shows it too.
"""
