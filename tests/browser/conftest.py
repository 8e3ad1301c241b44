"""The fixtures of the tests in a real browser."""

from browser_site import site
from real_browser import browser, look

__all__ = ["browser", "look", "site"]
