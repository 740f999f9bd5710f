"""Runs of the proof: kept, cheap over what moved; a broken ledger freezes its tenant alone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
import pytest_asyncio

from accounting import content_proof, metrics, proofs, reconciliation, retention
from accounting.service import Ledger
from runtime import database, ids
from runtime.content import ContentStore
from runtime.database import Database
from runtime.errors import Refusal
from runtime.settings import Settings
from tests.support import builders, sealing, work
from tests.support.database import DatabaseUrls


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=4)
    await pool.open()
    yield pool
    await pool.close()


@pytest.fixture
def store(tmp_path: Path) -> ContentStore:
    return ContentStore(str(tmp_path / "content"))


async def break_lots(own: Database, tenant_id: UUID) -> None:
    async with own.connection() as connection:
        await connection.execute(
            "UPDATE lot SET remaining = remaining - 1 WHERE tenant_id = $1", tenant_id
        )


async def mend_lots(own: Database, tenant_id: UUID) -> None:
    async with own.connection() as connection:
        await connection.execute(
            "UPDATE lot SET remaining = remaining + 1 WHERE tenant_id = $1", tenant_id
        )


async def frozen(own: Database) -> list[tuple[UUID, str]]:
    async with own.connection() as connection:
        return [(one.tenant_id, one.frozen_by) for one in await proofs.frozen(connection)]


async def a_kept_job(own: Database, store: ContentStore) -> tuple[UUID, UUID, str]:
    """A finished job with one page, whose content is in the store."""
    tenant = await builders.a_tenant(own, credits=10)
    await builders.a_job(own, tenant.tenant_id, max_pages=10)
    run = await work.claim(own)
    await work.pages(own, run)
    name = f"{retention.segment_prefix(tenant.tenant_id, run.lease.job_id)}1-a"
    await store.put(name, b"content")
    place = {"segment": name, "segment_offset": 0, "segment_length": 7}
    await work.settle(own, run, [work.ok(0, **place)])
    await work.finish(own, run)
    return tenant.tenant_id, run.lease.job_id, name


async def test_the_first_run_of_the_day_is_full_and_the_next_are_not(
    own: Database, store: ContentStore
) -> None:
    await builders.a_tenant(own, credits=10)

    made = [await proofs.run_due(own, store) for _ in range(2)]

    scopes = [proof.run.scope for proof in made if proof is not None]
    assert scopes == ["full", "recent"]
    async with own.connection() as connection:
        kept = await proofs.runs(connection, None, limit=10)
        older = await proofs.runs(connection, kept[0].run_id, limit=10)
    assert [run.scope for run in kept] == ["recent", "full"]
    assert older == kept[1:]
    assert [run.verdicts for run in kept] == [[], []]
    assert kept[0].tenants == 1
    assert kept[1].tenants is None


async def test_the_ledger_process_shows_what_is_broken_and_what_is_not_sealed(
    own: Database, store: ContentStore
) -> None:
    tenant = await builders.a_tenant(own, credits=10)
    await break_lots(own, tenant.tenant_id)
    ledger = Ledger(Settings(), own, store)
    gauge = metrics.INVARIANT_VIOLATIONS.labels("available_is_in_lots")

    await ledger.measure()
    unsealed = metrics.UNSEALED_ENTRIES._value.get()
    first, second = [await ledger.reconcile() for _ in range(2)]
    still_broken = gauge._value.get()
    await mend_lots(own, tenant.tenant_id)
    await ledger.reconcile()
    await sealing.seal_all(own)
    await ledger.measure()

    # a frozen tenant is proved again each minute, so that the gauge says when it is right again
    assert len(second) < len(first)
    assert (unsealed, still_broken, gauge._value.get()) == (1, 1, 0)
    assert metrics.UNSEALED_ENTRIES._value.get() == 0
    assert metrics.SEAL_AGE_SECONDS._value.get() == 0


async def test_while_one_process_proves_another_leaves_it_alone(
    own: Database, store: ContentStore
) -> None:
    async with own.transaction() as tx:
        assert await tx.fetchval(proofs.SQL.is_alone)
        assert await proofs.run_due(own, store) is None


async def test_a_recent_run_reads_what_moved_since_an_older_run(own: Database) -> None:
    quiet, busy = [await builders.a_tenant(own, credits=10) for _ in range(2)]
    await proofs.run(own, "full", asked_by="test")
    await age_runs(own, seconds=proofs.OVERLAP_SECONDS + 1)
    await builders.a_job(own, busy.tenant_id)
    await break_lots(own, quiet.tenant_id)

    recent = await proofs.run(own, "recent", asked_by="test")
    full = await proofs.run(own, "full", asked_by="test")

    assert (recent.run.tenants, recent.run.holds, recent.run.verdicts) == (1, 1, [])
    assert [one.invariant for one in full.run.verdicts] == ["available_is_in_lots"]


async def age_runs(own: Database, *, seconds: float) -> None:
    """A run as it would be after some minutes: rows are only added, so a copy is made."""
    async with own.connection() as connection:
        await connection.execute(
            """
            INSERT INTO reconciliation_run
            SELECT $1, scope, asked_by, started_at - make_interval(secs => $2), finished_at,
                   last_transfer, invariants, tenants, holds, verdicts FROM reconciliation_run
            """,
            ids.new_id(),
            seconds,
        )


async def test_a_broken_ledger_freezes_its_tenant_alone_until_it_is_unfrozen(
    own: Database,
) -> None:
    right, wrong = [await builders.a_tenant(own, credits=10) for _ in range(2)]
    await break_lots(own, wrong.tenant_id)

    first = await proofs.run(own, "full", asked_by="test")
    again = await proofs.run(own, "recent", asked_by="test")

    assert first.frozen == [wrong.tenant_id]
    assert again.frozen == []
    assert len(again.run.verdicts) == 1
    assert await frozen(own) == [(wrong.tenant_id, "available_is_in_lots")]
    async with own.transaction() as tx:
        await proofs.unfreeze(tx, wrong.tenant_id, actor="key", reason="looked")
    assert await frozen(own) == []
    for tenant_id, code in ((right.tenant_id, "invalid_state"), (ids.new_id(), "not_found")):
        with pytest.raises(Refusal) as refused:
            async with own.transaction() as tx:
                await proofs.unfreeze(tx, tenant_id, actor="key", reason="looked")
        assert refused.value.code == code


async def test_a_frozen_tenant_reserves_nothing_and_another_does(own: Database) -> None:
    right, wrong = [await builders.a_tenant(own, credits=10) for _ in range(2)]
    await break_lots(own, wrong.tenant_id)
    await proofs.run(own, "full", asked_by="test")
    await mend_lots(own, wrong.tenant_id)
    before = await builders.footprint(own, wrong.tenant_id)

    with pytest.raises(Refusal) as refused:
        await builders.a_job(own, wrong.tenant_id)
    await builders.a_job(own, right.tenant_id)

    assert refused.value.code == "tenant_suspended"
    assert await builders.footprint(own, wrong.tenant_id) == before


async def test_fifty_unfreezes_at_once_unfreeze_once(own: Database) -> None:
    tenant = await builders.a_tenant(own, credits=10)
    await break_lots(own, tenant.tenant_id)
    await proofs.run(own, "full", asked_by="test")

    async def unfreeze() -> str:
        try:
            async with own.transaction() as tx:
                await proofs.unfreeze(tx, tenant.tenant_id, actor="key", reason="looked")
        except Refusal as refusal:
            return refusal.code
        return "done"

    answers = await asyncio.gather(*(unfreeze() for _ in range(50)))
    assert sorted(answers) == ["done"] + ["invalid_state"] * 49


async def test_what_the_ledger_mends_by_itself_freezes_nobody(own: Database) -> None:
    tenant = await builders.a_tenant(own, credits=10)
    job_id = await builders.a_job(own, tenant.tenant_id)
    async with own.transaction() as tx:
        await tx.execute("SELECT skip_open_pages_v1($1, $2, 'cancelled')", tenant.tenant_id, job_id)
        await tx.execute("SELECT end_job_v1($1, $2, 'cancelled', NULL)", tenant.tenant_id, job_id)

    proof = await proofs.run(own, "full", asked_by="test")

    assert [one.invariant for one in proof.run.verdicts] == ["final_jobs_are_settled"]
    assert proof.frozen == []


async def test_content_that_is_listed_matches_and_orphans_are_counted(
    own: Database, store: ContentStore
) -> None:
    tenant_id, job_id, name = await a_kept_job(own, store)
    await store.put(f"{name}-nobody-names", b"orphan")

    match = await content_proof.match_content(own, store, tenant_id, job_id)

    assert (match.named, match.missing, match.orphans) == (1, [], 1)
    proof = await proofs.run(own, "full", asked_by="test", store=store)
    assert proof.verdicts[-1].invariant == content_proof.INVARIANT
    assert proof.run.verdicts == []


async def test_a_paid_page_without_its_content_is_a_violation(
    own: Database, store: ContentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_proof, "JOBS_A_READ", 1)
    await a_kept_job(own, store)
    tenant_id, job_id, name = await a_kept_job(own, store)
    await store.delete_under(retention.segment_prefix(tenant_id, job_id))

    match = await content_proof.match_content(own, store, tenant_id, job_id)
    proof = await proofs.run(own, "full", asked_by="test", store=store)

    assert match.missing == [name]
    (verdict,) = proof.run.verdicts
    assert (verdict.invariant, verdict.violations) == ("content_is_kept", 1)
    assert verdict.first is not None
    assert verdict.first.subject == str(job_id)
    assert proof.frozen == [tenant_id]


async def test_content_that_was_deleted_when_due_is_not_missed(
    own: Database, store: ContentStore
) -> None:
    tenant_id, job_id, _ = await a_kept_job(own, store)
    await work.move_time(own, job_id, expires_at=60 * 25)
    assert await retention.drop_due(own, store) == 1

    match = await content_proof.match_content(own, store, tenant_id, job_id)

    assert (match.named, match.missing, match.orphans) == (0, [], 0)


def test_a_query_with_parts_of_its_own_keeps_them() -> None:
    parts = {"hold": "SELECT 1"}

    assert reconciliation.shadowed("-- why\nSELECT 2", parts) == "WITH hold AS (SELECT 1)\nSELECT 2"
    assert reconciliation.shadowed("-- why\nWITH a AS (SELECT 2) SELECT 3", parts) == (
        "WITH hold AS (SELECT 1), a AS (SELECT 2) SELECT 3"
    )


def test_invariants_that_are_named_exist() -> None:
    names = {name for name, _ in reconciliation.SQL.items()}

    assert names >= reconciliation.OF_ONE_HOLD | reconciliation.OF_HISTORY | proofs.NEVER_FREEZES
