"""Hash-chains each tenant's entries into seals, so that a later change of one is seen."""

from collections.abc import AsyncIterator
from datetime import datetime
from uuid import UUID

import msgspec

from runtime import sql
from runtime.database import Connection, Database, Row

SQL = sql.beside(__file__)

ENTRIES_A_SEAL = 5_000
TENANTS_A_READ = 500


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a tenant's chain: number and hexadecimal SHA-256 of its last seal.

    `entries` is how many entries all seals hold. Seal 0 is the chain's origin, before any seal.
    """

    seal_no: int
    head: str
    entries: int
    sealed_at: datetime | None


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that no seal holds yet; normally those of the last minute."""

    entries: int
    oldest_seconds: float


async def head(connection: Connection, tenant_id: UUID) -> Head:
    """What a customer keeps to prove later that nothing before it was changed."""
    row = await connection.fetchrow(SQL.head, tenant_id)
    assert row is not None
    return msgspec.convert(dict(row), Head)


async def seal_due(database: Database) -> int:
    """Seals what every tenant's committed entries have grown by; how many entries that were.

    Safe beside itself: a tenant's seals are made one at a time, and no entry is sealed twice.
    """
    async with database.connection() as connection:
        # in this order: who begins after `position` is read has no id up to `last` any more
        last = int(await connection.fetchval(SQL.last_transfer))
        position = await connection.fetchrow(SQL.position)
    assert position is not None
    sealed = 0
    async for tenant_id in _tenants_to_seal(database, position["sealed_through"]):
        sealed += await _seal_tenant(database, tenant_id, position["sealed_through"])
    await _move(database, position, last)
    return sealed


async def backlog(connection: Connection) -> Backlog:
    row = await connection.fetchrow(SQL.backlog)
    assert row is not None
    return msgspec.convert(dict(row), Backlog)


async def last_transfer(connection: Connection) -> int:
    """The last id that any entry was given, whether or not it is committed."""
    return int(await connection.fetchval(SQL.last_transfer))


async def _seal_tenant(database: Database, tenant_id: UUID, sealed_through: int) -> int:
    """One transaction for each seal: what is sealed stays sealed if the next one fails."""
    total = 0
    while True:
        async with database.connection() as connection:
            sealed = int(
                await connection.fetchval(SQL.seal, tenant_id, sealed_through, ENTRIES_A_SEAL)
            )
        total += sealed
        if sealed < ENTRIES_A_SEAL:
            return total


async def _tenants_to_seal(database: Database, sealed_through: int) -> AsyncIterator[UUID]:
    after: UUID | None = None
    while True:
        async with database.connection() as connection:
            rows = await connection.fetch(
                SQL.tenants_to_seal, sealed_through, after, TENANTS_A_READ
            )
        for row in rows:
            yield row["tenant_id"]
        if len(rows) < TENANTS_A_READ:
            return
        after = rows[-1]["tenant_id"]


async def _move(database: Database, position: Row, last: int) -> None:
    """Where the next search begins; it moves on when what it waited for has ended."""
    async with database.connection() as connection:
        if not position["ripe"]:
            await connection.execute(SQL.forget_other_servers_xid)
            return
        before = position["sealed_through"], position["next_through"]
        await connection.execute(
            SQL.move, *before, position["next_through"], last, position["next_xid"]
        )
