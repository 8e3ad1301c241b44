"""What stands between strangers and the service, in the order in which a request meets it:
`guard` (plain ASGI around everything), `policy` (whether a request comes in), `access` (tokens,
sessions, hosts, permissions), `limits` (how much a client may send).
"""
