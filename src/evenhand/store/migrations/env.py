"""Alembic's environment: the revisions, on the connection from `schema_version`."""

from alembic import context

from evenhand.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite changes tables inside a transaction too; Alembic assumes it does not.
    transactional_ddl=True,
)
context.run_migrations()
