"""The end of a job: one final state, the rest released, the hold closed, retention begun."""

import asyncio
from datetime import timedelta

import pytest

from accounting import metering
from jobs.progress import adds_up
from jobs.records import JobError
from jobs.status import JobNotFound
from runtime import ids
from runtime.database import Database
from tests.support import builders, work

QUEUE_LIMIT = "job was not started within the 30-minute queue limit"


async def a_job(app: Database, system: Database, **fields):
    tenant = await builders.a_tenant(system, credits=1_000)
    return tenant.tenant_id, await builders.a_job(app, tenant.tenant_id, **fields)


async def a_run(app: Database, system: Database, *, succeeded: int = 1, **fields):
    tenant_id, _ = await a_job(app, system, **fields)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(3)])
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(number) for number in range(succeeded)])
    return tenant_id, run


async def sweep(system: Database):
    async with system.connection() as connection:
        swept = await metering.sweep_overdue(connection, limit=100)
    assert not [one.fault for one in swept if one.fault]
    return [(one.tenant, one.job, one.reason) for one in swept]


async def cancel(app: Database, tenant_id, job_id) -> str:
    async with app.connection() as connection:
        return await metering.cancel(connection, tenant_id, job_id)


async def test_the_rest_is_released_and_the_hold_closed(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system, succeeded=4)

    assert await work.finish(system, run) == "finished"

    job = await work.status_of(app, tenant_id, run.lease.job_id)
    balance = await builders.balance_of(system, tenant_id)
    assert (job.state, job.completion_reason, job.partial, job.error) == (
        "succeeded",
        "frontier_exhausted",
        False,
        None,
    )
    assert (job.usage.credits_reserved, job.usage.credits_charged, job.usage.credits_released) == (
        10,
        4,
        6,
    )
    assert not job.usage.settlement_pending
    assert job.expires_at - job.finished_at == timedelta(hours=24)
    assert (balance.available, balance.held) == (996, 0)


async def test_finishing_again_changes_nothing(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system)
    await work.finish(system, run)
    before = await work.status_of(app, tenant_id, run.lease.job_id)

    answers = await asyncio.gather(*(work.finish(system, run) for _ in range(10)))

    assert set(answers) == {"already"}
    assert await work.status_of(app, tenant_id, run.lease.job_id) == before


@pytest.mark.parametrize(
    "end",
    [
        ("deadline", 1, "succeeded", True, "timeout"),
        ("deadline", 0, "failed", False, "timeout"),
        ("budget", 1, "succeeded", True, "budget_exhausted"),
        ("page_limit", 1, "succeeded", True, "limit_reached"),
        ("internal_failure", 0, "failed", False, "internal_error"),
        ("upstream_failure", 0, "failed", False, "limit_reached"),
    ],
)
async def test_each_end_has_its_state_and_its_leftovers(
    app: Database, system: Database, end
) -> None:
    reason, succeeded, state, partial, leftover = end
    tenant_id, run = await a_run(app, system, succeeded=succeeded)

    await work.finish(system, run, reason)

    job = await work.status_of(app, tenant_id, run.lease.job_id)
    assert (job.state, job.completion_reason, job.partial) == (state, reason, partial)
    assert (job.error is None) == (state == "succeeded")
    assert adds_up(job.progress)
    assert job.progress.skipped == 4 - succeeded
    async with system.connection() as connection:
        left = await connection.fetch(
            "SELECT DISTINCT reason FROM page WHERE job_id = $1 AND state = 'skipped'",
            run.lease.job_id,
        )
    assert [row["reason"] for row in left] == [leftover]


async def test_the_error_of_a_failed_job_is_told(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system, succeeded=0)
    error = JobError(reason="not_found", message="the start URL gave no page: not_found")

    async with system.connection() as connection:
        await metering.finish(connection, run.lease, "upstream_failure", error)

    assert (await work.status_of(app, tenant_id, run.lease.job_id)).error == error


async def test_a_job_not_started_in_thirty_minutes_fails_word_for_word(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await a_job(app, system)
    await work.move_time(system, job_id, created_at=30, queue_limit_at=30, deadline_at=30)

    assert (tenant_id, job_id, "deadline") in await sweep(system)

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.completion_reason, job.started_at) == ("failed", "deadline", None)
    assert (job.error.reason, job.error.message) == ("timeout", QUEUE_LIMIT)
    assert (job.usage.credits_charged, job.usage.credits_released) == (0, 10)
    assert (await builders.balance_of(system, tenant_id)).available == 1_000


async def test_a_job_that_waited_29_minutes_is_left_alone(app: Database, system: Database) -> None:
    _, job_id = await a_job(app, system)
    await work.move_time(system, job_id, created_at=29, queue_limit_at=29, deadline_at=29)

    assert await sweep(system) == []


async def test_a_job_past_its_queue_limit_is_not_started_any_more(
    app: Database, system: Database
) -> None:
    _, job_id = await a_job(app, system)
    await work.move_time(system, job_id, created_at=30, queue_limit_at=30, deadline_at=30)

    assert await work.nothing_to_claim(system)


async def test_starting_moves_the_deadline_earlier(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_job(app, system, timeout_seconds=120)
    before = await work.status_of(app, tenant_id, job_id)

    await work.claim(system)

    job = await work.status_of(app, tenant_id, job_id)
    assert job.deadline_at < before.deadline_at
    assert job.deadline_at - job.started_at == timedelta(seconds=120)


async def test_a_dead_workers_job_ends_at_its_deadline_and_keeps_its_pages(
    app: Database, system: Database
) -> None:
    tenant_id, run = await a_run(app, system, succeeded=2)
    await work.move_time(system, run.lease.job_id, deadline_at=6, lease_until=6)

    await sweep(system)

    job = await work.status_of(app, tenant_id, run.lease.job_id)
    assert (job.state, job.completion_reason, job.partial) == ("succeeded", "deadline", True)
    assert job.usage.credits_charged == 2


async def test_a_live_worker_has_ten_seconds_for_its_last_flush(
    app: Database, system: Database
) -> None:
    tenant_id, run = await a_run(app, system, succeeded=2)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE job SET deadline_at = now() - interval '5 s' WHERE job_id = $1",
            run.lease.job_id,
        )

    assert await sweep(system) == []
    assert await work.pages(system, run) == []
    assert await work.settle(system, run, [work.ok(2)]) == "settled"

    await work.move_time(system, run.lease.job_id, deadline_at=1)
    assert len(await sweep(system)) == 1
    assert await work.settle(system, run, [work.ok(3)]) == "stale"
    assert (await work.status_of(app, tenant_id, run.lease.job_id)).usage.credits_charged == 3


async def test_a_queued_job_is_cancelled_at_once(app: Database, system: Database) -> None:
    tenant_id, job_id = await a_job(app, system)

    assert await cancel(app, tenant_id, job_id) == "cancelled"

    job = await work.status_of(app, tenant_id, job_id)
    assert (job.state, job.cancel_requested, job.progress.skipped) == ("cancelled", True, 1)
    assert job.usage.credits_released == 10


async def test_cancelling_a_final_job_is_no_change(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system)
    await work.finish(system, run)
    before = await work.status_of(app, tenant_id, run.lease.job_id)

    assert await cancel(app, tenant_id, run.lease.job_id) == "succeeded"

    assert await work.status_of(app, tenant_id, run.lease.job_id) == before


async def test_a_cancel_whose_worker_is_dead_ends_at_once(app: Database, system: Database) -> None:
    tenant_id, run = await a_run(app, system)
    await work.move_time(system, run.lease.job_id, lease_until=5)

    assert await cancel(app, tenant_id, run.lease.job_id) == "cancelled"


async def test_a_cancel_whose_worker_dies_after_it_is_ended_by_the_sweep(
    app: Database, system: Database
) -> None:
    tenant_id, run = await a_run(app, system)
    assert await cancel(app, tenant_id, run.lease.job_id) == "cancelling"
    await work.move_time(system, run.lease.job_id, lease_until=5)

    assert await sweep(system) == [(tenant_id, run.lease.job_id, "cancelled")]
    assert (await work.status_of(app, tenant_id, run.lease.job_id)).state == "cancelled"


async def test_another_tenants_job_cannot_be_cancelled(app: Database, system: Database) -> None:
    _, job_id = await a_job(app, system)
    stranger = await builders.a_tenant(system)

    for unknown in (job_id, ids.new_id()):
        with pytest.raises(JobNotFound):
            await cancel(app, stranger.tenant_id, unknown)


async def test_finish_cancel_and_sweep_race_to_one_end(app: Database, system: Database) -> None:
    for _ in range(20):
        tenant_id, run = await a_run(app, system, succeeded=2)
        await work.move_time(system, run.lease.job_id, deadline_at=6, lease_until=6)

        await asyncio.gather(
            work.finish(system, run),
            cancel(app, tenant_id, run.lease.job_id),
            sweep(system),
            work.settle(system, run, [work.ok(2), work.ok(3)]),
        )

        job = await work.status_of(app, tenant_id, run.lease.job_id)
        usage = job.usage
        assert job.state in {"succeeded", "cancelled"}
        assert not usage.settlement_pending
        assert usage.credits_reserved == usage.credits_charged + usage.credits_released


async def test_a_final_job_never_changes(app: Database, system: Database) -> None:
    _, run = await a_run(app, system)
    await work.finish(system, run)

    for change in ("state = 'failed'", "succeeded = 0", "completion_reason = 'deadline'"):
        with pytest.raises(Exception, match=r"refused|violates"):
            async with system.transaction() as tx:
                await tx.execute(f"UPDATE job SET {change} WHERE job_id = $1", run.lease.job_id)
