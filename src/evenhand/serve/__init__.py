"""The service over HTTP, MCP and web pages. `app` puts it together and `running` starts it; a
request passes `security/` first; `http/`, `mcp/` and `pages/` are thin edges over one `service`,
behind which stand `comparisons`, `runs`, `jobs`, `verdicts`, `reports` and `report_cache`.
"""
