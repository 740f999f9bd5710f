"""Runs of the reconciliation: what moved or everything, kept, and who is frozen by them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
import structlog

from accounting import content_proof, reconciliation, seals, tenants
from accounting.reconciliation import Moved, Verdict
from runtime import database as databases
from runtime import ids, sql
from runtime.content import ContentStore
from runtime.database import Connection, Database
from runtime.errors import Refusal

SQL = sql.beside(__file__)
log = structlog.get_logger()

RunScope = Literal["full", "recent"]

FULL_HOUR = 2
"""The hour of the day (UTC) from which the nightly full run is due."""
OVERLAP_SECONDS = 120.0
"""A recent run looks back beyond the run before it: longer than any transaction of ours lives."""
NEVER_FREEZES = frozenset({"final_jobs_are_settled"})
"""What a crash between two steps may leave, and the ledger process mends within seconds."""
LEDGER = "ledger"
"""Who asks for the runs on the clock."""


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was made: `verdicts` are the broken invariants alone; None counts are "all"."""

    run_id: UUID
    scope: RunScope
    asked_by: str
    started_at: datetime
    finished_at: datetime
    invariants: int
    tenants: int | None
    holds: int | None
    verdicts: list[Verdict]


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """A run with every invariant it proved, and the tenants it froze."""

    run: Run
    verdicts: list[Verdict]
    frozen: list[UUID]


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """A tenant that reserves nothing: since when, and by which invariant."""

    tenant_id: UUID
    frozen_at: datetime
    frozen_by: str


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the snapshot of a run told."""

    scope: RunScope
    started_at: datetime
    last_transfer: int
    moved: Moved | None
    verdicts: list[Verdict]


async def run_due(database: Database, store: ContentStore) -> Proof | None:
    """The run of this minute: full once a night, else over what moved.

    None where another process is at it. Only one ledger process proves at a time.
    """
    async with database.snapshot() as snapshot:
        if not await snapshot.fetchval(SQL.is_alone):
            return None
        is_full = await snapshot.fetchval(SQL.is_full_due, FULL_HOUR)
        seen = await _look(snapshot, "full" if is_full else "recent")
    return await _conclude(database, seen, asked_by=LEDGER, store=store if is_full else None)


async def run(
    database: Database, scope: RunScope, *, asked_by: str, store: ContentStore | None = None
) -> Proof:
    """A run now; with a store, the content that finished jobs must still have is looked for too."""
    async with database.snapshot() as snapshot:
        seen = await _look(snapshot, scope)
    return await _conclude(database, seen, asked_by=asked_by, store=store)


async def runs(connection: Connection, after: UUID | None, *, limit: int) -> list[Run]:
    """Runs, newest first, older than the run `after`."""
    rows = await connection.fetch(SQL.runs, after, limit)
    return [msgspec.convert(dict(row), Run) for row in rows]


async def frozen(connection: Connection) -> list[Frozen]:
    return [msgspec.convert(dict(row), Frozen) for row in await connection.fetch(SQL.frozen)]


async def unfreeze(tx: Connection, tenant_id: UUID, *, actor: str, reason: str) -> None:
    """Lets a tenant reserve again; raises Refusal where it is not frozen.

    The next run that finds its ledger broken freezes it again.
    """
    await tenants.read(tx, tenant_id)
    if await tx.fetchval(SQL.unfreeze, tenant_id) is None:
        raise Refusal("invalid_state", "This tenant is not frozen.")
    log.warning("tenant_unfrozen", tenant_id=str(tenant_id), actor=actor, reason=reason)


async def _look(snapshot: Connection, scope: RunScope) -> Seen:
    started_at: datetime = await snapshot.fetchval(SQL.now)
    last = await seals.last_transfer(snapshot)
    moved = None if scope == "full" else await _moved(snapshot)
    verdicts = (
        await reconciliation.prove(snapshot)
        if moved is None
        else await reconciliation.prove_moved(snapshot, moved)
    )
    return Seen(
        scope=scope, started_at=started_at, last_transfer=last, moved=moved, verdicts=verdicts
    )


async def _moved(snapshot: Connection) -> Moved:
    before = await snapshot.fetchrow(SQL.run_before, OVERLAP_SECONDS)
    last, since = (0, None) if before is None else (before["last_transfer"], before["started_at"])
    rows = await snapshot.fetch(SQL.moved, last, since)
    return Moved(
        tenants=sorted({row["tenant_id"] for row in rows}),
        holds=sorted((row["tenant_id"], row["hold_id"]) for row in rows if row["hold_id"]),
    )


async def _conclude(
    database: Database, seen: Seen, *, asked_by: str, store: ContentStore | None
) -> Proof:
    verdicts = list(seen.verdicts)
    if store is not None:
        verdicts.append(await content_proof.prove(database, store))
    for verdict in reconciliation.broken(verdicts):
        _tell(verdict)
    async with database.transaction() as tx:
        stopped = await _freeze(tx, reconciliation.broken(verdicts))
        made = await _record(tx, seen, verdicts, asked_by)
    return Proof(run=made, verdicts=verdicts, frozen=stopped)


async def _freeze(tx: Connection, broken: Sequence[Verdict]) -> list[UUID]:
    stopped: list[UUID] = []
    for verdict in broken:
        if verdict.invariant in NEVER_FREEZES:
            continue
        rows = await tx.fetch(SQL.freeze, verdict.tenants, verdict.invariant)
        for row in rows:
            log.error("tenant_frozen", tenant_id=str(row["tenant_id"]), invariant=verdict.invariant)
            stopped.append(row["tenant_id"])
    return stopped


async def _record(tx: Connection, seen: Seen, verdicts: list[Verdict], asked_by: str) -> Run:
    row: dict[str, Any] = {
        "run_id": ids.new_id(),
        "scope": seen.scope,
        "asked_by": asked_by,
        "started_at": seen.started_at,
        "invariants": len(verdicts),
        "tenants": None if seen.moved is None else len(seen.moved.tenants),
        "holds": None if seen.moved is None else len(seen.moved.holds),
        "verdicts": reconciliation.broken(verdicts),
    }
    kept = databases.as_json({**row, "last_transfer": seen.last_transfer})
    finished_at = await tx.fetchval(SQL.record, kept)
    return Run(**row, finished_at=finished_at)


def _tell(verdict: Verdict) -> None:
    first = verdict.first
    assert first is not None
    log.error(
        "invariant_broken",
        invariant=verdict.invariant,
        violations=verdict.violations,
        tenant_id=str(first.tenant_id),
        subject=first.subject,
        detail=first.detail,
    )
