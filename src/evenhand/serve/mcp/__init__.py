"""The Model Context Protocol's edge: `stdio` and `endpoint` bring requests in, `server` routes
them, `tools`, `prompts` and `resources` answer over one Service; `schemas` is what agents are
told of the tools.
"""
