"""The fixtures of the tests in a real browser."""

from browser_site import site
from real_browser import look, readers

__all__ = ["look", "readers", "site"]
