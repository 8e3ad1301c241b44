"""The Model Context Protocol's edge: tools, prompts and resources over one Service."""
