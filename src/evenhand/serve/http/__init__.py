"""The HTTP endpoints. `endpoint` says what one is, `requests` reads bodies and queries, `uploads`
takes files; then one module a subject: `compare`, `runs`, `reports`, `health`; `problems` is
every error's shape and `document` the OpenAPI document.
"""
