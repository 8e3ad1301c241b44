"""The fixtures of these tests."""

from postgres_server import _migrated_template, fresh_database, postgres
from ray_workers import crowd

__all__ = ["_migrated_template", "crowd", "fresh_database", "postgres"]
