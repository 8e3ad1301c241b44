"""The fixtures of the tests in a real browser."""

from parts import WHOLE, absent_packages

if WHOLE or not absent_packages("browser"):
    from browser_site import site
    from real_browser import look, readers

    __all__ = ["look", "readers", "site"]
else:
    collect_ignore_glob = ["test_*"]
