"""What Alembic runs: the revisions, on the connection that `schema_version` hands over."""

from alembic import context

from evenhand.store.schema import VERSION_TABLE, metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
    # SQLite's tables are made and changed inside a transaction too; Alembic assumes they are not.
    transactional_ddl=True,
)
context.run_migrations()
