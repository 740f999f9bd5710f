"""The schema revision that this code needs, for processes that must not import migrations."""

from runtime.database import Connection

SCHEMA_REVISION = "0010"


async def is_current(connection: Connection) -> bool:
    """Whether the database is at this revision, or at a newer one."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return False
    known = await connection.fetchval("SELECT version_num FROM alembic_version")
    return known is not None and known >= SCHEMA_REVISION
