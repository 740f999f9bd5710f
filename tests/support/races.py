"""Makes calls truly race: all of them stand before a tenant's locked account, then it opens."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from uuid import UUID

from runtime.database import Connection, Database

T = TypeVar("T")

CROWD = 20
"""Connections that wait at the lock together; the other calls follow as they come free."""
CALLS = 50
WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""
WAITING_ROLE = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = $1
"""


async def at_once(
    database: Database, tenant_id: UUID, call: Callable[[Database, int], Awaitable[T]]
) -> list[T | BaseException]:
    """What fifty calls answer or raise, each given the pool to use and its number.

    A call that reads before it takes the account's lock has read what the winner then changes.
    """
    crowd = Database(database.url, role=database.role, size=CROWD)
    await crowd.open()
    try:
        async with database.transaction(tenant_id) as gate:
            await gate.execute(
                "SELECT 1 FROM account WHERE tenant_id = $1 FOR NO KEY UPDATE", tenant_id
            )
            racing = asyncio.gather(
                *(call(crowd, number) for number in range(CALLS)), return_exceptions=True
            )
            await _all_wait(gate, racing)
        return await racing
    finally:
        await crowd.close()


async def waits(watch: Connection, asked: asyncio.Future[Any]) -> None:
    """Until a call stands at a lock, or has ended without one; PostgreSQL has to be asked."""
    while not asked.done() and not await watch.fetchval(WAITING):
        await watch.execute("SELECT pg_stat_clear_snapshot()")
        await asyncio.sleep(0.01)


async def _all_wait(gate: Connection, racing: asyncio.Future[list[T | BaseException]]) -> None:
    """PostgreSQL tells nobody who waits, so it is asked; calls that need no lock end meanwhile."""
    role = await gate.fetchval("SELECT current_setting('application_name')")
    while not racing.done() and await gate.fetchval(WAITING_ROLE, role) < CROWD:
        await gate.execute("SELECT pg_stat_clear_snapshot()")
        await asyncio.sleep(0.01)
