"""The feed numbers every entry once, without gaps, and replaying it gives every balance."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from uuid import UUID

import pytest_asyncio

from accounting import feed, ledger
from accounting.feed import Event
from runtime import database
from runtime.database import Database
from tests.support import builders, work
from tests.support.database import DatabaseUrls
from tests.support.races import waits


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=6)
    await pool.open()
    yield pool
    await pool.close()


async def events(system: Database, tenant_id: UUID) -> list[Event]:
    """The whole feed, read in small parts."""
    found: list[Event] = []
    async with system.connection() as connection:
        while part := await feed.events(
            connection, tenant_id, after=found[-1].seq if found else 0, limit=3
        ):
            found += part
    return found


async def a_day(system: Database) -> UUID:
    """Grants, two jobs with two flushes each, a cancel: entries of every usual kind."""
    tenant = await builders.a_tenant(system, credits=200)
    for _ in range(2):
        job_id = await builders.a_job(system, tenant.tenant_id, max_pages=20)
        async with system.connection() as connection:
            run = await builders.claimed(connection, job_id)
            await builders.finished_pages(connection, run, ["succeeded", "failed", "succeeded"])
        await work.finish(system, run)
    await builders.a_job(system, tenant.tenant_id, max_pages=5)
    return tenant.tenant_id


async def test_replaying_the_feed_gives_every_balance(own: Database) -> None:
    tenant_id = await a_day(own)

    await feed.number(own)

    accounts: Counter[str] = Counter()
    for event in await events(own, tenant_id):
        accounts[event.credit] += event.amount
        accounts[event.debit] -= event.amount
        assert min(accounts[name] for name in ("available", "held", "charged", "expired")) >= 0
    async with own.connection() as connection:
        balance = await ledger.balance(connection, tenant_id)
    assert accounts["available"] == balance.available
    assert accounts["held"] == balance.held
    assert accounts["charged"] == balance.charged_lifetime
    assert -accounts["issued"] == balance.granted


async def test_numbers_have_no_gaps_and_no_tenant_sees_anothers(own: Database) -> None:
    first, second = await a_day(own), await a_day(own)

    await feed.number(own)

    for tenant_id in (first, second):
        found = await events(own, tenant_id)
        assert [event.seq for event in found] == list(range(1, len(found) + 1))
        assert [event.entry_id for event in found] == sorted(event.entry_id for event in found)
    assert await work.violations(own) == []


async def test_numbering_again_changes_nothing(own: Database) -> None:
    tenant_id = await a_day(own)
    await feed.number(own)
    before = await events(own, tenant_id)

    assert await feed.number(own) == 0
    assert await events(own, tenant_id) == before


async def test_an_entry_waits_for_older_transactions_and_keeps_its_place(own: Database) -> None:
    """A lower id that commits late comes first all the same: nothing is numbered over its head."""
    early, late = await builders.a_tenant(own), await builders.a_tenant(own)
    await feed.number(own)
    async with own.transaction() as slow:
        await slow.fetch(
            "SELECT * FROM grant_v1($1, gen_random_uuid(), 5, 'grant', 'slow', NULL,"
            " 50::smallint, '{}')",
            early.tenant_id,
        )
        await builders.a_grant(own, late.tenant_id, 7)
        # one more transaction ends, so that the slow one is not the newest that is known
        await builders.a_grant(own, late.tenant_id, 8)
        assert await feed.number(own) == 0
        assert await events(own, late.tenant_id) == []

    assert await feed.number(own) == 3
    assert [event.amount for event in await events(own, early.tenant_id)] == [5]
    assert [event.amount for event in await events(own, late.tenant_id)] == [7, 8]
    assert await work.violations(own) == []


async def test_a_charge_that_waits_for_its_lock_is_not_passed_over(own: Database) -> None:
    """A flush behind a lock while the feed goes on: its entry is numbered once it is there."""
    tenant = await builders.a_tenant(own, credits=100)
    await builders.a_job(own, tenant.tenant_id, max_pages=3)
    run = await work.claim(own)
    await work.pages(own, run, 1)
    async with own.transaction() as gate, own.connection() as watch:
        # A lock of the table, because one that locks a row has an id, and the feed waits for it.
        await gate.execute("LOCK TABLE job IN EXCLUSIVE MODE")
        charging = asyncio.ensure_future(work.settle(own, run, [work.ok(0)]))
        await waits(watch, charging)
        await builders.a_grant(own, (await builders.a_tenant(own)).tenant_id, 1)
        await feed.number(own)
    await charging

    await feed.number(own)

    kinds = [event.kind for event in await events(own, tenant.tenant_id)]
    assert kinds == ["grant", "reserve", "charge"]
    assert await work.violations(own) == []


async def test_entries_that_were_rolled_back_leave_no_gap(own: Database) -> None:
    tenant = await builders.a_tenant(own, credits=10)
    transaction = None
    async with own.connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.fetch(
            "SELECT * FROM grant_v1($1, gen_random_uuid(), 5, 'grant', 'x', NULL,"
            " 50::smallint, '{}')",
            tenant.tenant_id,
        )
        await transaction.rollback()
    await builders.a_grant(own, tenant.tenant_id, 3)

    await feed.number(own)

    assert [event.seq for event in await events(own, tenant.tenant_id)] == [1, 2]


async def test_small_calls_give_the_same_numbers(own: Database) -> None:
    tenant_id = await a_day(own)
    async with own.connection() as connection:
        for _ in range(60):
            await connection.fetchval(feed.SQL.number, 1)

    found = await events(own, tenant_id)

    async with own.connection() as connection:
        entries = await connection.fetchval("SELECT count(*) FROM transfer")
    assert [event.seq for event in found] == list(range(1, entries + 1))


async def test_of_fifty_numberers_at_once_each_entry_gets_one_number(own: Database) -> None:
    tenant_id = await a_day(own)

    given = await asyncio.gather(*(feed.number(own) for _ in range(50)))

    async with own.connection() as connection:
        entries = await connection.fetchval("SELECT count(*) FROM transfer")
    await feed.number(own)
    assert sum(given) == entries
    assert len(await events(own, tenant_id)) == entries
    assert await work.violations(own) == []


async def test_numbering_while_jobs_are_charged_loses_nothing(own: Database) -> None:
    """Writers and a numberer side by side: afterwards every entry has its number."""
    busy = asyncio.create_task(a_day(own))
    while not busy.done():
        await feed.number(own)

    tenant_id = await busy
    await feed.number(own)
    async with own.connection() as connection:
        entries = await connection.fetchval(
            "SELECT count(*) FROM transfer WHERE tenant_id = $1", tenant_id
        )
    assert len(await events(own, tenant_id)) == entries
    assert await work.violations(own) == []


async def test_an_id_out_of_another_servers_dump_does_not_stop_the_feed(own: Database) -> None:
    tenant = await builders.a_tenant(own, credits=1)
    async with own.connection() as connection:
        await connection.fetchval(feed.SQL.number, 1_000)
        await connection.execute("UPDATE feed_position SET next_xid = '999999999999'")

    for _ in range(2):
        await feed.number(own)

    assert len(await events(own, tenant.tenant_id)) == 1
