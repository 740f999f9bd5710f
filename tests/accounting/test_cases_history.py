"""Complaints about balances over time, and about work that stopped half-way."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
import pytest_asyncio

from accounting import statements
from runtime import database
from runtime.database import Database
from runtime.embedded.postgres import EmbeddedPostgres
from runtime.errors import Unavailable
from tests.support import builders, corrections, history, work
from tests.support.database import DatabaseUrls

BACK = timedelta(days=62)
FULL = """
CREATE FUNCTION disk_full() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'no space is left' USING ERRCODE = '53100'; END$$;
CREATE TRIGGER disk_full BEFORE INSERT OR UPDATE ON {0} EXECUTE FUNCTION disk_full()
"""
SPACE = "DROP TRIGGER disk_full ON {0}; DROP FUNCTION disk_full()"
MISCHARGED = """
UPDATE page SET credits = credits + {0},
    transfer_id = CASE WHEN credits + {0} > 0 THEN transfer_id END WHERE page_no = 0;
UPDATE transfer SET amount = amount + {0} WHERE kind = 'charge';
UPDATE hold SET charged = charged + {0}
"""


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=4)
    await pool.open()
    yield pool
    await pool.close()


async def a_running_job(own: Database):
    """A tenant with 100 credits, and a job that charged two pages of ten in one batch."""
    tenant = await builders.a_tenant(own, credits=100)
    await builders.a_job(own, tenant.tenant_id, max_pages=10)
    run = await work.claim(own)
    await work.settle(own, run, found=[work.link(number) for number in range(4)])
    await work.pages(own, run)
    await work.settle(own, run, [work.ok(0), work.ok(1)])
    return tenant.tenant_id, run


async def folded(own: Database, tenant_id) -> list[tuple[datetime, int, int]]:
    """After each entry from the first on: available and held, added up by hand."""
    async with own.connection() as connection:
        rows = await connection.fetch(
            "SELECT * FROM transfer WHERE tenant_id = $1 ORDER BY transfer_id", tenant_id
        )
    balances = {"available": 0, "held": 0}
    told = []
    for row in rows:
        for account, sign in ((row["debit"], -1), (row["credit"], 1)):
            if account in balances:
                balances[account] += sign * row["amount"]
        just_after = row["recorded_at"] + timedelta(microseconds=1)
        told.append((just_after, balances["available"], balances["held"]))
    return told


async def read_at(own: Database, tenant_id, instants) -> list[tuple[datetime, int, int]]:
    told = []
    for instant in instants:
        async with own.snapshot() as snapshot:
            by_entries = await statements.totals_at(snapshot, tenant_id, instant)
            by_closes = await statements._balance_at(snapshot, tenant_id, instant)
        assert (by_entries.available, by_entries.held) == (by_closes.available, by_closes.held)
        told.append((instant, by_closes.available, by_closes.held))
    return told


@pytest.mark.tampers
async def test_a_balance_is_the_fold_of_its_entries_from_genesis_with_closes_or_without(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    tenant_id, run = await a_running_job(own)
    await history.move_entries(own_database_urls, postgres_server, BACK)
    assert await statements.close_due(own) >= 1
    await work.settle(own, run, [work.ok(2), work.failed(3)])
    await work.finish(own, run)
    await corrections.refund(own, tenant_id, run.lease.job_id, [0])
    await corrections.adjust(own, tenant_id, "adjust_out", 3)
    expected = await folded(own, tenant_id)
    instants = [instant for instant, _, _ in expected]

    with_closes = await read_at(own, tenant_id, instants)
    await history.change(own_database_urls, postgres_server, "DELETE FROM period_close")

    assert with_closes == expected
    assert await read_at(own, tenant_id, instants) == expected
    assert expected[-1][1:] == (100 - 3 + 1 - 3, 0)


@pytest.mark.tampers
@pytest.mark.parametrize("difference", [-1, +1], ids=["too little", "too much"])
async def test_a_charge_that_differs_from_what_is_stored_is_seen_in_both_directions(
    own: Database,
    own_database_urls: DatabaseUrls,
    postgres_server: EmbeddedPostgres,
    difference: int,
) -> None:
    """Entries, holds and pages agree with one another; what is stored has another price."""
    await a_running_job(own)
    await history.change(own_database_urls, postgres_server, MISCHARGED.format(difference))

    broken = {verdict.invariant for verdict in await work.violations(own)}

    assert broken == {"successes_cost_their_price"}


@pytest.mark.tampers
@pytest.mark.parametrize("table", ["transfer", "page_refund", "lot", "account", "correction"])
async def test_a_refund_is_made_or_raised_and_nothing_between(
    own: Database,
    own_database_urls: DatabaseUrls,
    postgres_server: EmbeddedPostgres,
    table: str,
) -> None:
    tenant_id, job_id = await corrections.a_charged_job(own)
    before = await builders.balance_of(own, tenant_id)
    await history.change(own_database_urls, postgres_server, FULL.format(table))
    with pytest.raises(Unavailable):
        await corrections.refund(own, tenant_id, job_id, [0], op_key="ticket-7")
    assert await builders.balance_of(own, tenant_id) == before
    await history.change(own_database_urls, postgres_server, SPACE.format(table))

    correction, replayed = await corrections.refund(own, tenant_id, job_id, [0], op_key="ticket-7")

    assert (correction.state, replayed) == ("done", False)
    assert (await builders.balance_of(own, tenant_id)).available == before.available + 1
    assert await work.violations(own) == []


@pytest.mark.tampers
@pytest.mark.parametrize("table", ["transfer", "hold", "hold_allocation", "lot", "account", "job"])
async def test_a_settlement_that_fails_has_moved_nothing_and_is_made_by_the_next_who_tries(
    own: Database,
    own_database_urls: DatabaseUrls,
    postgres_server: EmbeddedPostgres,
    table: str,
) -> None:
    tenant_id, run = await a_running_job(own)
    before = await work.status_of(own, tenant_id, run.lease.job_id)
    await history.change(own_database_urls, postgres_server, FULL.format(table))
    with pytest.raises(Unavailable):
        await work.finish(own, run)
    assert await work.status_of(own, tenant_id, run.lease.job_id) == before
    await history.change(own_database_urls, postgres_server, SPACE.format(table))

    await work.end_all(own)

    usage = (await work.status_of(own, tenant_id, run.lease.job_id)).usage
    assert (usage.credits_charged, usage.credits_released) == (2, 8)
    assert not usage.settlement_pending
    assert await work.violations(own) == []
