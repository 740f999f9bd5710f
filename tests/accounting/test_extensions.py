"""Extensions: higher limits and the credits for them, held once; and waiting for credits."""

import asyncio
from uuid import UUID

import msgspec
import pytest

from accounting import metering, pricing
from accounting.reserving import InsufficientCredits, OverBudget
from jobs import controls
from jobs.controls import InvalidState
from jobs.requests import Extension
from jobs.runs import Run
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, work


async def a_run(app: Database, system: Database, *, credits: int = 1_000, **fields: object) -> Run:
    tenant = await builders.a_tenant(system, credits=credits)
    await builders.a_job(app, tenant.tenant_id, **fields)
    return await work.claim(system)


async def extend(app: Database, run: Run, **limits: int) -> int:
    async with app.connection() as connection:
        return await metering.extend(
            connection, run.lease.tenant_id, run.lease.job_id, Extension(**limits)
        )


async def of(app: Database, run: Run):
    return await work.status_of(app, run.lease.tenant_id, run.lease.job_id)


async def available(system: Database, run: Run) -> int:
    return (await builders.balance_of(system, run.lease.tenant_id)).available


async def finish(system: Database, run: Run, reason="frontier_exhausted", *, extensions=0) -> str:
    async with system.connection() as connection:
        return await metering.finish(connection, run.lease, reason, extensions=extensions)


async def pause_for_budget(system: Database, run: Run) -> str:
    async with system.connection() as connection:
        return await controls.pause_for_budget(connection, run.lease, extensions=0)


async def resumed(system: Database) -> list[UUID]:
    async with system.connection() as connection:
        return [one.job for one in await metering.resume_funded(connection, limit=10)]


async def test_more_pages_are_held_further_once(app: Database, system: Database) -> None:
    run = await a_run(app, system, max_pages=10)

    assert [await extend(app, run, max_pages=25) for _ in range(3)] == [15, 0, 0]

    job = await of(app, run)
    assert (job.max_pages, job.usage.credits_reserved) == (25, 25)
    assert await available(system, run) == 975


async def test_lower_limits_than_now_change_nothing(app: Database, system: Database) -> None:
    run = await a_run(app, system, max_pages=10)

    assert await extend(app, run, max_pages=3, timeout_seconds=1) == 0
    assert (await of(app, run)).max_pages == 10


async def test_urls_that_the_limit_kept_out_are_admitted_after_all(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system, max_pages=3)
    found = [work.link(number) for number in range(6)]
    await work.settle(system, run, found=[*found, work.link(9, excluded="out_of_scope")])
    assert await work.excluded(system, run) == {"limit_reached": 4, "out_of_scope": 1}

    await extend(app, run, max_pages=6)

    job = await of(app, run)
    assert (job.progress.admitted, job.progress.discovery_excluded) == (6, 2)
    assert (job.progress.queued, job.progress.discovered) == (6, 8)
    assert await work.excluded(system, run) == {"limit_reached": 1, "out_of_scope": 1}
    assert len(await work.pages(system, run)) == 6


async def test_more_time_moves_the_deadline(app: Database, system: Database) -> None:
    run = await a_run(app, system, timeout_seconds=100)
    before = (await of(app, run)).deadline_at

    assert await extend(app, run, timeout_seconds=250) == 0

    assert ((await of(app, run)).deadline_at - before).total_seconds() == 150


async def test_more_time_for_a_paused_job_is_there_when_it_goes_on(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system, timeout_seconds=100)
    async with app.connection() as connection:
        await controls.pause(connection, run.lease.tenant_id, run.lease.job_id)
    async with system.connection() as connection:
        await controls.end_pause(connection, run.lease)

    await extend(app, run, timeout_seconds=200)
    async with app.connection() as connection:
        await controls.resume(connection, run.lease.tenant_id, run.lease.job_id)

    assert 198 < (await work.claim(system)).seconds_left <= 200


async def test_what_cannot_be_paid_changes_nothing(app: Database, system: Database) -> None:
    run = await a_run(app, system, credits=20, max_pages=10)

    with pytest.raises(InsufficientCredits):
        await extend(app, run, max_pages=21, timeout_seconds=900)

    job = await of(app, run)
    assert (job.max_pages, job.timeout_seconds, job.usage.credits_reserved) == (10, 300, 10)
    assert await available(system, run) == 10


async def test_a_cap_binds_an_extension_too(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_budget(system, tenant.tenant_id, cap=15)
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)

    with pytest.raises(OverBudget):
        await extend(app, run, max_pages=16)
    assert await extend(app, run, max_pages=15) == 5


async def test_the_customers_own_ceiling_binds_until_it_is_raised(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system, max_pages=10, max_credits=4)

    assert await extend(app, run, max_pages=20) == 0
    assert await extend(app, run, max_credits=30) == 16
    assert (await of(app, run)).usage.credits_reserved == 20


async def test_a_job_at_its_end_is_not_extended(app: Database, system: Database) -> None:
    run = await a_run(app, system)
    await work.finish(system, run)

    with pytest.raises(InvalidState):
        await extend(app, run, max_pages=20)


async def test_a_tenant_that_may_reserve_nothing_extends_nothing(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE tenant SET status = 'suspended' WHERE tenant_id = $1", run.lease.tenant_id
        )

    with pytest.raises(Refusal, match="suspended"):
        await extend(app, run, max_pages=20)


async def test_a_run_that_has_not_seen_an_extension_cannot_end_the_job(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system)
    await extend(app, run, max_pages=20)

    assert await finish(system, run) == "unfinished"
    assert await finish(system, run, "internal_failure") == "finished"


async def test_a_run_cannot_end_a_job_at_a_deadline_that_was_moved(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system)

    assert await finish(system, run, "deadline") == "unfinished"
    await work.move_time(system, run.lease.job_id, deadline_at=6)
    assert await finish(system, run, "deadline") == "finished"


async def test_twenty_extensions_at_once_hold_once(app: Database, system: Database) -> None:
    run = await a_run(app, system, max_pages=10)

    moved = await asyncio.gather(*(extend(app, run, max_pages=30) for _ in range(20)))

    assert sorted(moved) == [0] * 19 + [20]


async def test_a_rolling_job_is_extended_by_its_ceiling_and_tops_up(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system, max_pages=150, reservation="rolling")
    async with system.connection() as connection:
        await metering.top_up(connection, run.lease, run.prices)
        assert await metering.top_up(connection, run.lease, run.prices) == "at_ceiling"

        assert await extend(app, run, max_pages=400) == 0
        assert await metering.top_up(connection, run.lease, run.prices) == "topped_up"
    assert (await of(app, run)).usage.credits_reserved == 250


async def test_a_job_that_waits_for_credits_goes_on_when_there_are_some(
    app: Database, system: Database
) -> None:
    run = await a_run(
        app,
        system,
        credits=pricing.TRANCHE_PAGES,
        max_pages=500,
        reservation="rolling",
        when_out_of_credits="pause",
    )
    pages = [work.ok(page.page_no) for page in await work.pages(system, run)]
    await work.settle(system, run, pages, found=[work.link(number) for number in range(150)])
    taken = await work.pages(system, run, 200)
    await work.settle(system, run, [work.ok(page.page_no) for page in taken])

    assert await pause_for_budget(system, run) == "paused"
    job = await of(app, run)
    assert (job.pause_reason, job.usage.credits_charged) == ("budget", 100)
    assert await resumed(system) == []

    await builders.a_grant(system, run.lease.tenant_id, 100)
    assert await resumed(system) == [run.lease.job_id]
    assert (await of(app, run)).state == "queued"


async def test_a_pause_that_was_asked_for_does_not_end_by_itself(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system)
    assert await pause_for_budget(system, run) == "paused"
    async with app.connection() as connection:
        await controls.pause(connection, run.lease.tenant_id, run.lease.job_id)

    assert await resumed(system) == []


def test_an_extension_has_the_bounds_of_a_request() -> None:
    for limits in ({"max_pages": 0}, {"timeout_seconds": 86_401}, {"pages": 3}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(limits, Extension)
