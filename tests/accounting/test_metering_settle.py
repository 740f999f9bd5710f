"""Settling: a page, its charge and its children commit together, once, under the lease."""

import asyncio
from datetime import timedelta

import pytest

from accounting import metering
from jobs import runs
from jobs.outcomes import Facts
from jobs.progress import adds_up
from jobs.records import JobWarning
from runtime import clock
from runtime.database import Database
from tests.support import builders, work


async def a_run(app: Database, system: Database, *, links: int = 0, **fields):
    """A tenant with 1,000 credits and a claimed job with its seed and so many links in flight."""
    tenant = await builders.a_tenant(system, credits=1_000)
    job_id = await builders.a_job(app, tenant.tenant_id, **fields)
    run = await work.claim(system)
    assert run.lease.job_id == job_id
    await work.settle(system, run, found=[work.link(number) for number in range(links)])
    await work.pages(system, run)
    return tenant, run


async def job_of(app: Database, run):
    return await work.status_of(app, run.lease.tenant_id, run.lease.job_id)


async def test_successes_are_charged_from_the_hold_alone(app: Database, system: Database) -> None:
    tenant, run = await a_run(app, system, links=4)

    assert await work.settle(system, run, [work.ok(number) for number in range(3)]) == "settled"

    job = await job_of(app, run)
    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (job.progress.succeeded, job.usage.credits_charged) == (3, 3)
    assert (balance.available, balance.held, balance.charged_lifetime) == (990, 7, 3)


async def test_a_batch_settled_again_changes_nothing(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, links=4)
    batch = [work.ok(0), work.failed(1)]
    found = [work.link(number) for number in range(10, 13)]
    await work.settle(system, run, batch, found)
    before = await job_of(app, run)

    for _ in range(3):
        assert await work.settle(system, run, batch, found) == "settled"

    after = await job_of(app, run)
    assert (after.progress, after.usage) == (before.progress, before.usage)


async def test_overlapping_batches_settle_only_what_is_new(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, links=4)
    await work.settle(system, run, [work.ok(0), work.ok(1)])

    await work.settle(system, run, [work.ok(1), work.failed(0), work.ok(2)])

    job = await job_of(app, run)
    assert (job.progress.succeeded, job.progress.failed) == (3, 0)
    assert job.usage.credits_charged == 3


async def test_a_hundred_settles_at_once_charge_each_page_once(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, links=9)

    await asyncio.gather(
        *(
            work.settle(system, run, [work.ok(number), work.ok((number + 1) % 10)])
            for _ in range(10)
            for number in range(10)
        )
    )

    assert (await job_of(app, run)).usage.credits_charged == 10


async def test_failed_and_skipped_pages_are_released_in_their_flush(
    app: Database, system: Database
) -> None:
    tenant, run = await a_run(app, system, links=4)

    await work.settle(system, run, [work.ok(0), work.failed(1), work.skipped(2)])

    job = await job_of(app, run)
    assert (job.usage.credits_charged, job.usage.credits_released) == (1, 2)
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 992


async def test_releases_return_to_the_last_funded_lot(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system)
    first = await builders.a_grant(
        system, tenant.tenant_id, 3, expires_at=clock.now() + timedelta(days=1)
    )
    second = await builders.a_grant(system, tenant.tenant_id, 7)
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)
    await work.pages(system, run)

    await work.settle(system, run, [work.failed(0)])

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert [(lot.lot_id, lot.remaining) for lot in balance.lots] == [(second, 1)]
    assert first != second


async def test_what_returns_to_an_expired_lot_is_released_and_expired(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system)
    lot = await builders.a_grant(
        system, tenant.tenant_id, 10, expires_at=clock.now() + timedelta(days=1)
    )
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)
    await work.pages(system, run)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' WHERE lot_id = $1", lot
        )

    await work.settle(system, run, [work.ok(0)])
    await work.finish(system, run)

    balance = await builders.balance_of(system, tenant.tenant_id)
    job = await job_of(app, run)
    assert (job.usage.credits_charged, job.usage.credits_released) == (1, 9)
    assert (balance.available, balance.held, balance.expired) == (0, 0, 9)


async def test_below_the_ceiling_a_failed_page_does_not_shrink_the_budget(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, links=3, max_pages=10, max_credits=3)

    await work.settle(system, run, [work.failed(0)])

    assert (await job_of(app, run)).usage.credits_released == 0
    # Three more fetches are paid for, although the one that failed was the first.
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(number) for number in (1, 2, 3)])
    assert (await job_of(app, run)).usage.credits_charged == 3


async def test_no_more_pages_are_in_flight_than_the_hold_can_pay(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, links=8, max_pages=10, max_credits=3)

    assert (await job_of(app, run)).progress.in_flight == 3
    assert await work.pages(system, run) == []


async def test_an_old_token_writes_nothing(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, links=2)
    await work.move_time(system, run.lease.job_id, lease_until=5)
    async with system.connection() as connection:
        await runs.free_leases(connection, limit=10)
    newer = await work.claim(system)
    await work.pages(system, newer)

    assert await work.settle(system, run, [work.ok(0)], [work.link(50)]) == "stale"
    assert await work.finish(system, run) == "stale"

    job = await job_of(app, run)
    assert (job.progress.succeeded, job.progress.discovered) == (0, 3)
    assert await work.settle(system, newer, [work.ok(0)]) == "settled"


async def test_from_the_cancel_on_no_page_is_charged(app: Database, system: Database) -> None:
    tenant, run = await a_run(app, system, links=2)
    await work.settle(system, run, [work.ok(0)])
    async with app.connection() as connection:
        state = await metering.cancel(connection, tenant.tenant_id, run.lease.job_id)

    assert state == "cancelling"
    assert await work.settle(system, run, [work.ok(1)]) == "cancelled"
    assert await work.finish(system, run, "frontier_exhausted") == "finished"

    job = await job_of(app, run)
    assert (job.state, job.completion_reason) == ("cancelled", "cancelled")
    assert (job.usage.credits_charged, job.usage.credits_released) == (1, 9)
    assert (job.progress.skipped, job.progress.in_flight) == (2, 0)


async def test_a_late_page_of_a_final_job_is_neither_stored_nor_charged(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, links=2)
    await work.finish(system, run)
    before = await job_of(app, run)

    assert await work.settle(system, run, [work.ok(1)]) == "stale"

    assert await job_of(app, run) == before


async def test_links_are_admitted_in_order_up_to_max_pages(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, max_pages=3)

    await work.settle(system, run, [work.ok(0)], [work.link(number) for number in range(5)])

    job = await job_of(app, run)
    assert adds_up(job.progress)
    assert (job.progress.admitted, job.progress.discovery_excluded) == (3, 3)
    assert {claim.url for claim in await work.pages(system, run)} == {
        "https://example.com/0",
        "https://example.com/1",
    }
    assert await work.excluded(system, run) == {"limit_reached": 3}


async def test_a_repeated_link_is_no_discovery(app: Database, system: Database) -> None:
    _, run = await a_run(app, system, links=2)

    await work.settle(
        system,
        run,
        found=[work.link(0), work.link(7), work.link(7), work.link(8, excluded="out_of_scope")],
    )
    await work.settle(system, run, found=[work.link(8), work.link(7, excluded="out_of_scope")])

    job = await job_of(app, run)
    assert (job.progress.discovered, job.progress.admitted) == (5, 4)
    assert await work.excluded(system, run) == {"out_of_scope": 1}


async def test_beyond_twenty_times_max_pages_excluded_urls_are_counted_not_listed(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system, max_pages=2)
    strangers = [work.link(number, excluded="out_of_scope") for number in range(50)]

    await work.settle(system, run, found=strangers)

    assert (await job_of(app, run)).progress.discovery_excluded == 50
    assert await work.excluded(system, run) == {"out_of_scope": 40}


async def test_a_flush_tells_phase_warnings_and_round_limit(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system)
    warning = JobWarning(code="source_failed", message="robots.txt could not be read")

    await work.settle(
        system, run, facts=Facts(phase="sitemap", warnings=[warning], round_limit_met=True)
    )

    job = await job_of(app, run)
    assert (job.phase, job.warnings) == ("sitemap", [warning])


async def test_entries_can_be_neither_changed_nor_deleted(
    app: Database, system: Database, database_urls
) -> None:
    tenant, run = await a_run(app, system)
    await work.settle(system, run, [work.ok(0)])
    for statement in (
        "UPDATE transfer SET amount = amount + 1",
        "DELETE FROM transfer",
        "TRUNCATE transfer",
    ):
        for database in (app, system):
            with pytest.raises(Exception, match="permission denied"):
                async with database.transaction(tenant.tenant_id) as tx:
                    await tx.execute(statement)


async def test_a_final_page_never_changes_but_for_its_content(
    app: Database, system: Database
) -> None:
    _, run = await a_run(app, system)
    place = {"segment": "s", "segment_offset": 0, "segment_length": 1}
    await work.settle(system, run, [work.ok(0, **place)])

    for change in ("credits = 0", "state = 'failed'", "title = 'x'", "segment = 'other'"):
        with pytest.raises(Exception, match="is refused"):
            async with system.transaction() as tx:
                await tx.execute(f"UPDATE page SET {change} WHERE job_id = $1", run.lease.job_id)
    async with system.transaction() as tx:
        await tx.execute(
            "UPDATE page SET segment = NULL, segment_offset = NULL, segment_length = NULL "
            "WHERE job_id = $1",
            run.lease.job_id,
        )
