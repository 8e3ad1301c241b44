"""A store's address on its way to a worker: without its password, which the worker has itself."""

from __future__ import annotations

import os

from evenhand.store.address import SECRET_OPTIONS, ServerAddress, read_address


def with_own_secrets(shown: str) -> str:
    """With the password of this process's EVENHAND_STORE, where that is the same store; else as it
    is, and libpq looks for one (PGPASSWORD, PGPASSFILE, ~/.pgpass)."""
    own = os.environ.get("EVENHAND_STORE", "").strip()
    if not own:
        return shown
    mine, wanted = read_address(own), read_address(shown)
    if not isinstance(mine, ServerAddress) or not isinstance(wanted, ServerAddress):
        return shown
    same = ("username", "host", "port", "database")
    if any(getattr(mine.url, name) != getattr(wanted.url, name) for name in same):
        return shown
    query = dict(wanted.url.query)
    query |= {name: mine.url.query[name] for name in SECRET_OPTIONS if name in mine.url.query}
    whole = wanted.url.set(password=mine.url.password, query=query)
    return whole.render_as_string(hide_password=False)
