"""Sweeps over many jobs: each ends by itself, whatever is wrong with another."""

from datetime import timedelta

from accounting import metering
from runtime import clock
from runtime.database import Database
from tests.support import builders, work

QUEUE_LIMIT = "job was not started within the 30-minute queue limit"


async def a_job(app: Database, system: Database, **fields):
    tenant = await builders.a_tenant(system, credits=1_000)
    return tenant.tenant_id, await builders.a_job(app, tenant.tenant_id, **fields)


async def sweep(system: Database):
    async with system.connection() as connection:
        swept = await metering.sweep_overdue(connection, limit=100)
    assert not [one.fault for one in swept if one.fault]
    return [(one.tenant, one.job, one.reason) for one in swept]


async def test_jobs_on_one_expired_lot_end_in_one_sweep(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system)
    lot = await builders.a_grant(
        system, tenant.tenant_id, 100, expires_at=clock.now() + timedelta(days=1)
    )
    jobs = [await builders.a_job(app, tenant.tenant_id) for _ in range(3)]
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' WHERE lot_id = $1", lot
        )
    for job_id in jobs:
        await work.move_time(system, job_id, created_at=30, queue_limit_at=30, deadline_at=30)

    assert len(await sweep(system)) == 3

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert (balance.available, balance.held, balance.expired) == (0, 0, 100)


async def test_a_job_that_cannot_be_ended_keeps_no_other_from_its_end(
    app: Database, system: Database
) -> None:
    tenant_id, broken = await a_job(app, system)
    other_tenant, other = await a_job(app, system)
    for job_id in (broken, other):
        await work.move_time(system, job_id, created_at=30, queue_limit_at=30, deadline_at=30)
    async with system.transaction() as tx:
        await tx.execute("UPDATE hold_allocation SET released = 1 WHERE hold_id = $1", broken)

    async with system.connection() as connection:
        swept = {one.job: one for one in await metering.sweep_overdue(connection, limit=100)}

    assert "cannot give back" in (swept[broken].fault or "")
    assert swept[other].fault is None
    assert (await work.status_of(app, other_tenant, other)).state == "failed"
    assert (await work.status_of(app, tenant_id, broken)).state == "queued"
    async with system.transaction() as tx:
        await tx.execute("UPDATE hold_allocation SET released = 0 WHERE hold_id = $1", broken)
