"""Moves a ledger's entries into the past, which nobody but a superuser can do."""

from datetime import timedelta

from runtime import database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support.database import DatabaseUrls

MOVE = "UPDATE transfer SET recorded_at = recorded_at - $1::interval WHERE transfer_id > $2"


async def move_entries(
    urls: DatabaseUrls, server: EmbeddedPostgres, back: timedelta, *, beyond: int = 0
) -> None:
    """Entries beyond an id, and every hold's and job's own times, so much earlier."""
    name = urls.system.split("@/")[1].split("?")[0]
    connection = await database.connect(server.url(database=name))
    try:
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(MOVE, back, beyond)
        await connection.execute(
            "UPDATE hold SET opened_at = opened_at - $1::interval,"
            " closed_at = closed_at - $1::interval",
            back,
        )
        await connection.execute(
            "UPDATE job SET created_at = created_at - $1::interval,"
            " finished_at = finished_at - $1::interval",
            back,
        )
        await connection.execute("UPDATE page SET settled_at = settled_at - $1::interval", back)
    finally:
        await connection.close()
