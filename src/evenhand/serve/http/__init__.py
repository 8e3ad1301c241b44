"""The HTTP endpoints: thin edges over the service."""
