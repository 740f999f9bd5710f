"""What a crash between steps leaves is settled by the ledger process, and counted."""

from datetime import timedelta
from pathlib import Path

import pytest

from accounting import lots, metrics, retention, settlement
from accounting.service import Ledger
from runtime import clock, settings
from runtime.content import ContentStore
from runtime.database import Database
from tests.support import builders, work


async def an_orphan(app: Database, system: Database, *, succeeded: int = 2):
    """A final job whose hold is still open, made by hand: no code of ours leaves one."""
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(3)])
    await work.pages(system, run)
    await work.settle(system, run, [work.ok(number) for number in range(succeeded)])
    async with system.transaction() as tx:
        await tx.execute(
            "SELECT skip_open_pages_v1($1, $2, 'cancelled')", tenant.tenant_id, run.lease.job_id
        )
        await tx.execute(
            "SELECT end_job_v1($1, $2, 'cancelled', NULL)", tenant.tenant_id, run.lease.job_id
        )
    return tenant.tenant_id, run.lease.job_id


async def test_an_orphaned_hold_is_closed_and_retention_begins(
    app: Database, system: Database
) -> None:
    tenant_id, job_id = await an_orphan(app, system)
    before = await work.status_of(app, tenant_id, job_id)
    settled_before = metrics.ORPHANS_SETTLED._value.get()

    assert await settlement.settle(system) == 1

    job = await work.status_of(app, tenant_id, job_id)
    assert before.usage.settlement_pending
    assert not isinstance(before.expires_at, type(clock.now()))
    assert not job.usage.settlement_pending
    assert job.expires_at > job.finished_at
    assert (job.usage.credits_charged, job.usage.credits_released) == (2, 8)
    assert metrics.ORPHANS_SETTLED._value.get() == settled_before + 1
    assert (await builders.balance_of(system, tenant_id)).available == 998


async def test_settling_twice_settles_once(app: Database, system: Database) -> None:
    await an_orphan(app, system)

    assert [await settlement.settle(system) for _ in range(3)] == [1, 0, 0]


async def test_pending_settlement_is_measured(app: Database, system: Database) -> None:
    await an_orphan(app, system)
    async with system.connection() as connection:
        pending = await settlement.pending(connection)

    assert pending.jobs == 1
    await settlement.settle(system)


async def test_nothing_is_deleted_while_settlement_is_pending(
    app: Database, system: Database, tmp_path: Path
) -> None:
    tenant_id, job_id = await an_orphan(app, system)
    store = ContentStore(str(tmp_path))
    await store.put(f"{retention.segment_prefix(tenant_id, job_id)}1-a", b"kept")
    await work.move_time(system, job_id, expires_at=60 * 25)

    assert await retention.drop_due(system, store) == 0

    assert len(await store.names_under(f"{tenant_id}")) == 1
    await settlement.settle(system)


async def test_content_is_deleted_when_due_and_the_bill_stays(
    app: Database, system: Database, tmp_path: Path
) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    await builders.a_job(app, tenant.tenant_id, max_pages=10)
    run = await work.claim(system)
    await work.pages(system, run)
    folder = retention.segment_prefix(tenant.tenant_id, run.lease.job_id)
    store = ContentStore(str(tmp_path))
    await store.put(f"{folder}1-a", b"content")
    place = {"segment": f"{folder}1-a", "segment_offset": 0, "segment_length": 7}
    await work.settle(system, run, [work.ok(0, **place)])
    await work.finish(system, run)
    before = await work.status_of(app, tenant.tenant_id, run.lease.job_id)

    assert await retention.drop_due(system, store) == 0
    await work.move_time(system, run.lease.job_id, expires_at=60 * 24)
    assert await retention.drop_due(system, store) == 1
    assert await retention.drop_due(system, store) == 0

    job = await work.status_of(app, tenant.tenant_id, run.lease.job_id)
    assert await store.names_under(folder) == []
    assert (job.state, job.usage) == (before.state, before.usage)
    async with system.connection() as connection:
        row = await connection.fetchrow(
            "SELECT segment, credits, url FROM page WHERE job_id = $1", run.lease.job_id
        )
    assert dict(row) == {"segment": None, "credits": 1, "url": "https://example.com/"}


async def test_the_ledger_process_expires_lots_tenant_by_tenant(system: Database) -> None:
    tenants = [await builders.a_tenant(system) for _ in range(3)]
    for tenant in tenants:
        await builders.a_grant(
            system, tenant.tenant_id, 4, expires_at=clock.now() + timedelta(days=1)
        )
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' WHERE expires_at IS NOT NULL"
        )
        assert len(await lots.tenants_with_expired_lots(connection, limit=10)) == 3

    assert await settlement.expire_lots(system) == 12


@pytest.fixture
def ledger(system: Database, tmp_path: Path) -> Ledger:
    return Ledger(settings.load({}), system, ContentStore(str(tmp_path)))


async def test_the_ledger_process_measures_and_proves(
    app: Database, system: Database, ledger: Ledger
) -> None:
    await an_orphan(app, system)
    await ledger.measure()
    verdicts = await ledger.reconcile()

    assert metrics.SETTLEMENT_PENDING_JOBS._value.get() == 1
    assert [v.invariant for v in verdicts if v.violations] == ["final_jobs_are_settled"]
    gauge = metrics.INVARIANT_VIOLATIONS.labels("final_jobs_are_settled")
    assert gauge._value.get() == 1
    await settlement.settle(system)
