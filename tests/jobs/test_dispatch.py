"""Whose job is next: shares by weight, a rotation, priorities, runs that keep dying."""

from collections import Counter
from uuid import UUID

import pytest
from msgspec import UNSET

from accounting import metering, tenants
from jobs import operations, runs
from jobs.operations import OperatorFilter
from jobs.runs import Run
from runtime.database import Database
from tests.support import builders, work

DEATHS = 10


async def a_line(app: Database, system: Database, jobs: int, **plan: int) -> UUID:
    """A tenant with so many queued jobs of one page, under a plan of its own."""
    made = await builders.a_plan(system, **({"running_jobs": 100} | plan))
    tenant = await builders.a_tenant(system, credits=1_000, plan=made.plan_id)
    for _ in range(jobs):
        await builders.a_job(app, tenant.tenant_id, max_pages=1)
    return tenant.tenant_id


async def starts(system: Database, count: int, *, at_a_time: int = 1) -> list[UUID]:
    """Whose jobs are started one after the other in so many slots; the oldest ends first."""
    began: list[UUID] = []
    running: list[Run] = []
    for _ in range(count):
        if len(running) == at_a_time:
            await work.finish(system, running.pop(0))
        run = await work.claim(system)
        began.append(run.lease.tenant_id)
        running.append(run)
    for run in running:
        await work.finish(system, run)
    return began


async def die(system: Database, job_id: UUID) -> None:
    await work.move_time(system, job_id, lease_until=5)
    async with system.connection() as connection:
        await runs.free_leases(connection, limit=10)


async def test_a_long_line_delays_another_tenants_first_job_by_one_start_at_most(
    app: Database, system: Database
) -> None:
    crowd = await a_line(app, system, 12)
    assert await starts(system, 5) == [crowd] * 5

    late = await a_line(app, system, 3)

    assert late in await starts(system, 2)


@pytest.mark.parametrize("slots", [1, 4])
async def test_equal_tenants_take_turns(app: Database, system: Database, slots: int) -> None:
    lines = [await a_line(app, system, 6) for _ in range(3)]

    began = await starts(system, 12, at_a_time=slots)

    assert Counter(began) == dict.fromkeys(lines, 4)


@pytest.mark.parametrize("slots", [1, 4])
async def test_starts_are_shared_by_weight(app: Database, system: Database, slots: int) -> None:
    heavy = await a_line(app, system, 12, weight=3)
    light = await a_line(app, system, 12, weight=1)

    began = Counter(await starts(system, 12, at_a_time=slots))

    assert began == {heavy: 9, light: 3}


async def test_who_was_away_gains_one_start_at_most(app: Database, system: Database) -> None:
    away, busy = await a_line(app, system, 1), await a_line(app, system, 20)
    await starts(system, 12)
    for _ in range(6):
        await builders.a_job(app, away, max_pages=1)

    began = await starts(system, 8)

    assert Counter(began)[away] in {4, 5}
    assert began[1] == busy or began[2] == busy


async def test_a_tenant_with_a_long_run_waits_for_those_with_none(
    app: Database, system: Database
) -> None:
    busy, free = await a_line(app, system, 3), await a_line(app, system, 3)
    for _ in range(2):
        run = await work.claim(system)
        if run.lease.tenant_id == free:
            await work.finish(system, run)

    for _ in range(2):
        run = await work.claim(system)
        assert run.lease.tenant_id == free
        await work.finish(system, run)
    assert (await work.claim(system)).lease.tenant_id == busy


async def test_within_a_tenant_the_highest_priority_is_first_then_the_oldest(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    jobs = [
        await builders.a_job(app, tenant.tenant_id, priority=priority)
        for priority in (50, 10, 90, 50)
    ]

    began = [(await work.claim(system)).lease.job_id for _ in jobs]

    assert began == [jobs[2], jobs[0], jobs[3], jobs[1]]


async def test_a_plans_running_jobs_are_slots_and_no_more(app: Database, system: Database) -> None:
    await a_line(app, system, 5, running_jobs=2)
    first, _ = await work.claim(system), await work.claim(system)
    assert await work.nothing_to_claim(system)

    await work.finish(system, first)

    await work.claim(system)
    assert await work.nothing_to_claim(system)


async def test_a_job_whose_run_was_handed_back_goes_before_new_ones(
    app: Database, system: Database
) -> None:
    await a_line(app, system, 3)
    first = await work.claim(system)
    async with system.connection() as connection:
        await runs.hand_back(connection, first.lease)

    assert (await work.claim(system)).lease.job_id == first.lease.job_id


async def test_a_job_whose_runs_keep_dying_is_given_up_and_shown_to_the_operator(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(app, tenant.tenant_id, max_pages=5)
    for _ in range(DEATHS):
        await work.claim(system)
        await die(system, job_id)
    assert await work.nothing_to_claim(system)

    async with system.connection() as connection:
        (swept,) = await metering.sweep_overdue(connection, limit=10)
        given_up, _ = await operations.newest(
            connection,
            OperatorFilter(completion_reason="internal_failure", tenant_id=tenant.tenant_id),
            after=None,
            limit=10,
        )

    job = await work.status_of(app, tenant.tenant_id, job_id)
    assert (swept.job, swept.reason, swept.fault) == (job_id, "internal_failure", None)
    assert (job.state, job.completion_reason) == ("failed", "internal_failure")
    assert job.error is not None
    assert job.error.reason == "internal_error"
    assert (job.usage.credits_released, job.usage.settlement_pending) == (5, False)
    assert [(one.job_id, one.deaths) for one in given_up] == [(job_id, DEATHS)]


async def test_runs_that_get_something_done_may_die_more_often(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(app, tenant.tenant_id, max_pages=30)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(29)])
    for _ in range(DEATHS + 5):
        (page,) = await work.pages(system, run, 1)
        await work.settle(system, run, [work.ok(page.page_no)])
        await die(system, job_id)
        run = await work.claim(system)

    async with system.connection() as connection:
        assert await metering.sweep_overdue(connection, limit=10) == []


async def test_a_slot_is_the_lease_of_a_running_job(app: Database, system: Database) -> None:
    """Nothing else is counted, so that nothing can drift: the plan's limit is of leases."""
    tenant_id = await a_line(app, system, 3, running_jobs=1)
    run = await work.claim(system)
    async with system.connection() as connection:
        free = await connection.fetch("SELECT * FROM free_tenants_v1()")
        assert tenant_id not in {row["tenant_id"] for row in free}
        await metering.cancel(connection, tenant_id, run.lease.job_id)
        assert await metering.finish(connection, run.lease, "cancelled") == "finished"
        free = await connection.fetch("SELECT * FROM free_tenants_v1()")

    assert {row["tenant_id"]: row["slots"] for row in free}[tenant_id] == 0


async def test_a_plan_keeps_its_weight_and_rate(system: Database) -> None:
    made = await builders.a_plan(system, weight=7, pages_per_second=20)

    async with system.connection() as connection:
        known = {plan.plan_id: plan for plan in await tenants.plans(connection)}

    assert known[made.plan_id] == made


async def test_a_waiting_job_tells_its_place_and_when_it_may_start(
    app: Database, system: Database
) -> None:
    plan = await builders.a_plan(system, running_jobs=2)
    tenant = await builders.a_tenant(system, credits=1_000, plan=plan.plan_id)
    jobs = [await builders.a_job(app, tenant.tenant_id) for _ in range(5)]
    urgent = await builders.a_job(app, tenant.tenant_id, priority=90)
    for _ in range(2):
        run = await work.claim(system)
        assert run.lease.tenant_id == tenant.tenant_id
    await work.move_time(system, run.lease.job_id, started_at=1)
    await work.finish(system, run)

    async def place(job_id: UUID) -> tuple[int, int]:
        found = (await work.status_of(app, tenant.tenant_id, job_id)).queue
        assert found is not UNSET
        return found.position, found.starts_in_seconds

    assert (await work.status_of(app, tenant.tenant_id, urgent)).queue is UNSET
    assert [await place(job_id) for job_id in jobs[1:]] == [
        (1, 0),
        (2, pytest.approx(30, abs=1)),
        (3, pytest.approx(60, abs=1)),
        (4, pytest.approx(90, abs=1)),
    ]
