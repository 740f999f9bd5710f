"""Brings a database to a revision, up or down, and tells which one it has."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory

from migrations import functions
from runtime import database
from runtime.database import Connection

HEAD = "head"
BASE = "base"


def upgrade(url: str, revision: str = HEAD) -> None:
    """Applies what is missing; running it twice, or twice at once, changes nothing more."""
    command.upgrade(_config(url), revision)
    if revision == HEAD:
        asyncio.run(_with_connection(url, functions.apply))


def downgrade(url: str, revision: str = BASE) -> None:
    """Takes steps back; at the base nothing of the schema is left but the roles."""
    asyncio.run(_with_connection(url, functions.drop))
    command.downgrade(_config(url), revision)


def head() -> str:
    """The newest revision this code knows."""
    revision = ScriptDirectory.from_config(_config("")).get_current_head()
    assert revision is not None
    return revision


async def current(connection: Connection) -> str | None:
    """The database's revision; None where it is empty."""
    if await connection.fetchval("SELECT to_regclass('alembic_version')") is None:
        return None
    known: str | None = await connection.fetchval("SELECT version_num FROM alembic_version")
    return known


async def _with_connection(url: str, work: Callable[[Connection], Awaitable[object]]) -> None:
    connection = await database.connect(url)
    try:
        await work(connection)
    finally:
        await connection.close()


def _config(url: str) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent))
    config.attributes["url"] = url
    return config
