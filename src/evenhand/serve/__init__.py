"""The service: HTTP, MCP and pages, thin edges over the rooms above."""
