"""Moves a ledger's entries into the past, which nobody but a superuser can do."""

from datetime import timedelta

from runtime import database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support.database import DatabaseUrls

MOVES = (
    "UPDATE transfer SET recorded_at = recorded_at - {0}",
    "UPDATE hold SET opened_at = opened_at - {0}, closed_at = closed_at - {0}",
    "UPDATE job SET created_at = created_at - {0}, finished_at = finished_at - {0}",
    "UPDATE page SET settled_at = settled_at - {0}",
)


async def move_entries(urls: DatabaseUrls, server: EmbeddedPostgres, back: timedelta) -> None:
    """All entries, and the times of holds, jobs and pages, so much earlier."""
    interval = f"interval '{back.total_seconds()} s'"
    await change(urls, server, *(move.format(interval) for move in MOVES))


async def change(urls: DatabaseUrls, server: EmbeddedPostgres, *statements: str) -> None:
    """Changes what no role of the house may change, past every trigger."""
    name = urls.system.split("@/")[1].split("?")[0]
    connection = await database.connect(server.url(database=name))
    try:
        await connection.execute("SET session_replication_role = replica")
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()
