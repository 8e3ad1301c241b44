"""Analyses of stored runs. `registry` describes each by a light value, from which the command, the
HTTP endpoint, the cached figure, the page, the Python function and the docs come; one module each
holds what it computes and says: `gate`, `rank`."""
