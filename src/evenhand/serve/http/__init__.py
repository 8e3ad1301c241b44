"""The HTTP endpoints, on FastAPI. `requests` bounds queries and bodies, `routes` is what endpoints
share (dependencies, Idempotency-Key), `uploads` takes files; then one router a subject: `compare`,
`runs`, `reports`, `health`; `problems` is every error's shape and `document` the OpenAPI document.
"""
