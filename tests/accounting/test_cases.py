"""What users of metered systems complained about, each as a test of the ledger."""

import asyncio
from datetime import timedelta
from typing import get_args

import pytest

from accounting import metering, pricing, reserving, tenants
from accounting.pricing import PriceLine
from jobs import runs
from jobs.status import JobNotFound
from jobs.vocabulary import Reason
from runtime import clock, database
from runtime.database import Database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support import builders, history, work
from tests.support.database import DatabaseUrls

REASONS = get_args(Reason)
CHECK_VIOLATION = "23514"
FRACTIONS = """
SELECT table_name || '.' || column_name AS name FROM information_schema.columns
WHERE table_schema = 'public' AND data_type IN ('numeric', 'real', 'double precision', 'money')
"""
NOT_CREDITS = {
    "plan.host_interval_seconds",
    "job.seconds_left",
    "job_status.seconds_left",
    "dispatch.pass",
    "dispatch_clock.pass",
}


async def a_run(app: Database, system: Database, *, links: int = 0, **fields):
    """A tenant with 1,000 credits, and its claimed job with so many pages beside the first."""
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, **fields)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(links)])
    await work.pages(system, run)
    return tenant.tenant_id, run


async def job_of(app: Database, run):
    return await work.status_of(app, run.lease.tenant_id, run.lease.job_id)


@pytest.mark.parametrize("end", [work.failed, work.skipped])
async def test_no_reason_costs_anything(app: Database, system: Database, end) -> None:
    tenant_id, run = await a_run(app, system, links=len(REASONS), max_pages=len(REASONS) + 1)

    await work.settle(system, run, [end(number, reason) for number, reason in enumerate(REASONS)])

    job = await job_of(app, run)
    assert (job.usage.credits_charged, job.usage.credits_released) == (0, len(REASONS))
    assert (await builders.balance_of(system, tenant_id)).held == 1


@pytest.mark.parametrize(
    ("batch", "succeeded", "failed"),
    [
        ([work.ok(0), work.ok(0)], 1, 0),
        ([work.ok(0), work.failed(0)], 1, 0),
        ([work.failed(0), work.ok(0)], 0, 1),
        ([work.ok(1), work.ok(0), work.ok(1), work.ok(0)], 2, 0),
    ],
)
async def test_a_page_that_is_twice_in_a_batch_counts_once_as_it_was_told_first(
    app: Database, system: Database, batch, succeeded: int, failed: int
) -> None:
    _, run = await a_run(app, system, links=3)

    assert await work.settle(system, run, batch) == "settled"

    job = await job_of(app, run)
    assert (job.progress.succeeded, job.progress.failed) == (succeeded, failed)
    assert job.usage.credits_charged == succeeded
    assert await work.violations(system) == []


async def test_a_hundred_flushes_at_once_charge_no_more_than_is_reserved(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, links=9, max_pages=10, max_credits=4)

    async def flush(number: int) -> int:
        await work.settle(system, run, [work.ok(number % 10), work.ok((number + 3) % 10)])
        await work.pages(system, run)
        usage = (await job_of(app, run)).usage
        assert usage.credits_charged + usage.credits_released <= usage.credits_reserved
        return usage.credits_charged

    told = await asyncio.gather(*(flush(number) for number in range(100)))

    assert max(told) == (await job_of(app, run)).usage.credits_charged == 4
    assert await work.pages(system, run) == []


async def test_a_charge_beyond_the_hold_is_refused_whole(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, links=3)
    before = await job_of(app, run)
    async with system.connection() as connection:
        with pytest.raises(Exception, match="never_over_reserve") as caught:
            await metering.settle_pages(
                connection, run.lease, {"page": 6}, [work.ok(0), work.ok(1)], [], work.Facts()
            )

    assert database.sqlstate(caught.value) == CHECK_VIOLATION
    assert await job_of(app, run) == before


async def test_every_entry_of_a_job_is_named_by_what_lasts(app: Database, system: Database) -> None:
    """By ids that are stored, so that a repeated call gives the same name, never a new one."""
    _, run = await a_run(app, system, links=2, max_pages=3)
    await work.settle(system, run, [work.ok(0), work.failed(1)])
    await work.finish(system, run)
    job_id = run.lease.job_id
    async with system.connection() as connection:
        rows = await connection.fetch(
            "SELECT op_key FROM transfer WHERE hold_id = $1 ORDER BY transfer_id", job_id
        )

    assert [row["op_key"] for row in rows] == [
        f"reserve:{job_id}",
        f"charge:{job_id}:2",
        f"release:{job_id}:2",
        f"release:{job_id}",
    ]


async def test_a_refused_submit_leaves_nothing_that_could_be_settled(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=5)
    refused = builders.a_submission(tenant.tenant_id, max_pages=6)
    before = await builders.footprint(system, tenant.tenant_id)
    async with app.connection() as connection:
        terms = pricing.terms(refused.request, await pricing.current(connection))
        with pytest.raises(reserving.InsufficientCredits):
            await reserving.enqueue(connection, refused, terms)
        with pytest.raises(JobNotFound):
            await metering.cancel(connection, tenant.tenant_id, refused.job_id)
    lease = runs.Lease(tenant_id=tenant.tenant_id, job_id=refused.job_id, token=1)
    async with system.connection() as connection:
        settled = await metering.settle_pages(
            connection, lease, {"page": 1}, [work.ok(0)], [], work.Facts()
        )

    assert settled == "stale"
    assert await builders.footprint(system, tenant.tenant_id) == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE account SET available = -1",
        "UPDATE lot SET remaining = amount + 1",
        "UPDATE lot SET remaining = -1, exhausted = false",
        "UPDATE hold SET charged = reserved + 1",
        "UPDATE hold SET reserved = ceiling + 1",
        "UPDATE transfer SET amount = -amount",
        "UPDATE transfer SET credit = 'charged' WHERE kind = 'reserve'",
        "UPDATE hold SET state = 'closed', closed_at = now()",
    ],
)
async def test_the_tables_themselves_refuse_what_no_function_does(
    app: Database,
    system: Database,
    database_urls: DatabaseUrls,
    postgres_server: EmbeddedPostgres,
    change: str,
) -> None:
    """Not even a superuser can, past every trigger and function."""
    await a_run(app, system)
    with pytest.raises(Exception, match="violates check constraint") as caught:
        await history.change(database_urls, postgres_server, change)

    assert database.sqlstate(caught.value) == CHECK_VIOLATION


async def test_no_column_of_credits_can_hold_a_fraction(system: Database) -> None:
    async with system.connection() as connection:
        found = {row["name"] for row in await connection.fetch(FRACTIONS)}

    assert found - NOT_CREDITS == set()


async def test_a_later_grant_funds_no_earlier_reserve(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system, links=1)
    soon = clock.now() + timedelta(minutes=5)
    later = await builders.a_grant(system, tenant_id, 50, expires_at=soon)

    await work.settle(system, run, [work.ok(0), work.failed(1)])
    await work.finish(system, run)

    lots = {
        lot.lot_id: lot.remaining for lot in (await builders.balance_of(system, tenant_id)).lots
    }
    assert lots.pop(later) == 50
    assert list(lots.values()) == [999]


async def test_a_changed_plan_or_price_book_touches_no_credits(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=70)
    await builders.a_grant(system, tenant.tenant_id, 30, priority=1)
    before = await builders.balance_of(system, tenant.tenant_id)
    async with system.connection() as connection:
        plan = next(one for one in await tenants.plans(connection) if one.plan_id == tenant.plan_id)
        await tenants.put_plan(connection, plan)
    async with system.transaction() as tx:
        await pricing.publish(tx, [PriceLine(kind="crawl", outcome="page", credits=1)])

    assert await builders.balance_of(system, tenant.tenant_id) == before


async def test_a_price_that_changes_in_mid_job_changes_none_of_its_charges(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, links=2)
    await work.settle(system, run, [work.ok(0)])
    async with system.transaction() as tx:
        await pricing.publish(tx, [PriceLine(kind="crawl", outcome="page", credits=9)])
    await work.settle(system, run, [work.ok(1)])
    await work.move_time(system, run.lease.job_id, lease_until=5)
    async with system.connection() as connection:
        await runs.free_leases(connection, limit=10)
    next_run = await work.claim(system)
    await work.pages(system, next_run)
    await work.settle(system, next_run, [work.ok(2)])
    async with system.transaction() as tx:
        await pricing.publish(tx, [PriceLine(kind="crawl", outcome="page", credits=1)])

    assert next_run.prices == run.prices == {"page": 1}
    assert (await job_of(app, run)).usage.credits_charged == 3


async def test_the_order_in_a_batch_changes_no_charge(app: Database, system: Database) -> None:
    batch = [work.ok(0), work.failed(1), work.ok(2), work.skipped(3), work.ok(4)]
    usages = []
    for order in (batch, batch[::-1], batch[3:] + batch[:3]):
        _, run = await a_run(app, system, links=4)
        await work.settle(system, run, order)
        async with system.connection() as connection:
            rows = await connection.fetch(
                "SELECT credits FROM page WHERE job_id = $1 ORDER BY page_no", run.lease.job_id
            )
        usages.append(([row["credits"] for row in rows], (await job_of(app, run)).usage))

    assert usages[0][0] == [1, 0, 1, 0, 1]
    assert usages[1:] == usages[:1] * 2


async def test_seven_hours_under_a_lease_of_half_a_minute_have_one_owner(
    app: Database, system: Database
) -> None:
    """Only renewals count: nothing takes a job away for having run long."""
    _, run = await a_run(app, system, timeout_seconds=36_000)
    await work.move_time(system, run.lease.job_id, started_at=420, created_at=425, deadline_at=420)
    for _ in range(5):
        async with system.connection() as connection:
            assert await runs.renew(connection, run.lease, lease_seconds=30) is not None
            assert await runs.free_leases(connection, limit=10) == []
            assert await metering.sweep_overdue(connection, limit=10) == []
        assert await work.nothing_to_claim(system)

    assert await work.settle(system, run, [work.ok(0)]) == "settled"
