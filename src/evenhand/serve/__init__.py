"""The service over HTTP, MCP and web pages. `app` puts it together and `running` starts it; a
request passes `security/` first; `http/`, `mcp/` and `pages/` are thin edges over one `service`,
behind which stand `comparisons`, `runs`, `jobs` and `verdicts`. `reports` declares every figure
once; HTTP and MCP wait for it, pages show what `figures` keeps; `figure_pool` computes those
of large runs.
"""
