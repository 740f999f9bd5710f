"""The usage feed: every entry once, numbered without gaps, in an order that never changes."""

from uuid import UUID

import msgspec

from accounting.ledger import Entry
from runtime import sql
from runtime.database import Connection, Database

SQL = sql.beside(__file__)

IDS_A_CALL = 20_000
CALLS_A_TURN = 50


class Event(Entry, frozen=True, kw_only=True):
    """An entry with its place in the tenant's feed: 1, 2, 3, and so on."""

    seq: int


async def number(database: Database) -> int:
    """Numbers the entries that no running transaction can still come before; how many."""
    total = idle = 0
    async with database.connection() as connection:
        for _ in range(CALLS_A_TURN):
            given = await connection.fetchval(SQL.number, IDS_A_CALL)
            total += given
            # one call may only note how far ids have been given out, the next then numbers them
            idle = 0 if given else idle + 1
            if idle > 1:
                break
    return total


async def events(connection: Connection, tenant_id: UUID, *, after: int, limit: int) -> list[Event]:
    """Events beyond a number, in order."""
    rows = await connection.fetch(SQL.events, tenant_id, after, limit)
    return [msgspec.convert(dict(row), Event) for row in rows]
