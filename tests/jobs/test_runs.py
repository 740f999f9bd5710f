"""Leases: one run at a time, fair starts, nothing lost when a worker dies."""

import asyncio

import pytest

from jobs import runs
from jobs.progress import adds_up
from runtime.database import Database
from tests.support import builders, work


async def renew(system: Database, run: runs.Run):
    async with system.connection() as connection:
        return await runs.renew(connection, run.lease, lease_seconds=60.0)


async def die(system: Database, run: runs.Run) -> None:
    """The worker is silent for longer than its lease, and the watchdog comes by."""
    await work.move_time(system, run.lease.job_id, lease_until=5)
    async with system.connection() as connection:
        await runs.free_leases(connection, limit=100)


async def a_run(app: Database, system: Database, *, links: int = 3, **fields) -> runs.Run:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, **fields)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(links)])
    return run


async def test_fifty_claims_of_one_job_are_one(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id)

    async def claim():
        async with system.connection() as connection:
            return await runs.claim_job(connection, "w", lease_seconds=60.0)

    claimed = await asyncio.gather(*(claim() for _ in range(50)))

    assert sum(run is not None for run in claimed) == 1


async def test_a_tenant_runs_no_more_jobs_than_its_plan_permits(
    app: Database, system: Database
) -> None:
    plan = await builders.a_plan(system, running_jobs=2)
    tenant = await builders.a_tenant(system, credits=1_000, plan=plan.plan_id)
    for _ in range(4):
        await builders.a_job(app, tenant.tenant_id)

    first, _ = [await work.claim(system) for _ in range(2)]

    assert await work.nothing_to_claim(system)
    await work.finish(system, first)
    await work.claim(system)
    assert await work.nothing_to_claim(system)


async def test_a_tenant_with_many_jobs_does_not_delay_another_tenants_first(
    app: Database, system: Database
) -> None:
    busy, quiet = [await builders.a_tenant(system, credits=1_000) for _ in range(2)]
    for _ in range(10):
        await builders.a_job(app, busy.tenant_id)
    await work.claim(system)
    await builders.a_job(app, quiet.tenant_id)

    assert (await work.claim(system)).lease.tenant_id == quiet.tenant_id


async def test_the_oldest_job_of_a_tenant_goes_first(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    made = [await builders.a_job(app, tenant.tenant_id) for _ in range(3)]

    assert [(await work.claim(system)).lease.job_id for _ in range(3)] == made


async def test_a_heartbeat_tells_state_and_time_left(app: Database, system: Database) -> None:
    run = await a_run(app, system, timeout_seconds=100)

    renewal = await renew(system, run)

    assert renewal is not None
    assert renewal.job_state == "running"
    assert 0 < renewal.seconds_left <= 100


async def test_a_lost_lease_is_not_renewed(app: Database, system: Database) -> None:
    run = await a_run(app, system)
    await die(system, run)

    assert await renew(system, run) is None
    assert await work.pages(system, run) == []


async def test_a_dead_runs_pages_go_to_the_next_run(app: Database, system: Database) -> None:
    run = await a_run(app, system)
    taken = await work.pages(system, run)
    await work.settle(system, run, [work.ok(0)])

    await die(system, run)
    second = await work.claim(system)
    again = await work.pages(system, second)

    assert second.lease.token > run.lease.token
    assert {claim.page_no for claim in again} == {claim.page_no for claim in taken} - {0}
    assert {claim.attempts for claim in again} == {2}
    job = await work.status_of(app, run.lease.tenant_id, run.lease.job_id)
    assert adds_up(job.progress)
    assert job.usage.fetch_attempts == 7


async def test_the_time_left_is_that_of_the_first_start(app: Database, system: Database) -> None:
    run = await a_run(app, system, timeout_seconds=600)
    await work.move_time(system, run.lease.job_id, deadline_at=5)
    await die(system, run)

    assert (await work.claim(system)).seconds_left <= 300


async def test_a_freed_lease_leaves_a_live_one_alone(app: Database, system: Database) -> None:
    run = await a_run(app, system)

    async with system.connection() as connection:
        assert await runs.free_leases(connection, limit=100) == []

    assert await renew(system, run) is not None


async def test_handing_back_queues_what_was_in_flight(app: Database, system: Database) -> None:
    run = await a_run(app, system)
    await work.pages(system, run)

    async with system.connection() as connection:
        assert await runs.hand_back(connection, run.lease)
        assert not await runs.hand_back(connection, run.lease)

    job = await work.status_of(app, run.lease.tenant_id, run.lease.job_id)
    assert (job.progress.in_flight, job.progress.queued) == (0, 4)
    assert (await work.claim(system)).lease.job_id == run.lease.job_id


async def test_pages_are_claimed_shallowest_first(app: Database, system: Database) -> None:
    run = await a_run(app, system, links=0, max_pages=10)
    await work.settle(
        system, run, found=[work.link(1, depth=2), work.link(2, depth=1), work.link(3, depth=2)]
    )

    claimed = await work.pages(system, run, 2)

    assert {claim.depth for claim in claimed} == {0, 1}


async def test_by_level_the_next_level_waits_for_the_last_page_of_this_one(
    app: Database, system: Database
) -> None:
    run = await a_run(app, system, links=2)

    assert len(await work.pages(system, run, by_level=True)) == 1
    assert await work.pages(system, run, by_level=True) == []
    await work.settle(system, run, [work.ok(0)])
    assert len(await work.pages(system, run, by_level=True)) == 2


async def test_a_page_that_kills_its_worker_fails_alone(app: Database, system: Database) -> None:
    """Two deaths with a batch, two alone: then it is the page, and no neighbour is blamed."""
    run = await a_run(app, system, links=3)
    await work.pages(system, run)
    for _ in range(2):
        await die(system, run)
        run = await work.claim(system)
        await work.pages(system, run)
    alone = await work.pages(system, run)
    assert alone == []

    poison = None
    for _ in range(20):
        job = await work.status_of(app, run.lease.tenant_id, run.lease.job_id)
        if job.progress.failed:
            break
        assert job.progress.in_flight == 1
        await die(system, run)
        run = await work.claim(system)
        claimed = await work.pages(system, run)
        poison = claimed[0].page_no if claimed else poison

    job = await work.status_of(app, run.lease.tenant_id, run.lease.job_id)
    assert (job.progress.failed, job.usage.credits_charged) == (1, 0)
    async with system.connection() as connection:
        row = await connection.fetchrow(
            "SELECT reason, detail FROM page WHERE job_id = $1 AND state = 'failed'",
            run.lease.job_id,
        )
    assert dict(row) == {"reason": "internal_error", "detail": "killed_its_worker"}


async def test_what_earlier_runs_know_is_known_to_the_next(app: Database, system: Database) -> None:
    run = await a_run(app, system, links=2)
    await work.settle(system, run, found=[work.link(9, excluded="out_of_scope")])
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(0, content_hash="ab" * 16), work.failed(1)])

    async with system.connection() as connection:
        keys = {key async for key in runs.known_keys(connection, run.lease)}
        bodies = {key async for key in runs.known_content(connection, run.lease)}

    assert len(keys) == 4
    assert bodies == {bytes.fromhex("ab" * 16)}


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_a_suspended_tenants_jobs_do_not_start(
    app: Database, system: Database, state
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id)
    if state == "running":
        await die(system, await work.claim(system))
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE tenant SET status = 'suspended' WHERE tenant_id = $1", tenant.tenant_id
        )

    assert await work.nothing_to_claim(system)
