"""The loops of the ledger process: settle, expire lots, retain, reconcile; one is active."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from accounting import metrics, reconciliation, retention, settlement
from runtime import clock, loops
from runtime.content import ContentStore
from runtime.database import Connection, Database
from runtime.settings import Settings

log = structlog.get_logger()

LEADER = "SELECT pg_try_advisory_xact_lock(hashtext($1))"
RECONCILE_SECONDS = 60.0
METRICS_SECONDS = 5.0


class Ledger:
    """The duties that end, keep and prove what workers and gateways have written."""

    def __init__(self, settings: Settings, database: Database, store: ContentStore) -> None:
        self._settings = settings
        self._database = database
        self._store = store

    async def run(self, stop: asyncio.Event) -> None:
        """All duties until `stop`; with several ledger processes each turn is taken by one."""
        seconds = self._settings.ledger_seconds
        duties: list[tuple[str, float, Callable[[], Awaitable[object]]]] = [
            ("settle", seconds, lambda: settlement.settle(self._database)),
            ("expire_lots", seconds, lambda: settlement.expire_lots(self._database)),
            ("retain", seconds, lambda: retention.drop_due(self._database, self._store)),
            ("measure", METRICS_SECONDS, self.measure),
            ("reconcile", RECONCILE_SECONDS, self.reconcile),
        ]
        async with asyncio.TaskGroup() as group:
            for name, pause, duty in duties:
                group.create_task(
                    loops.every(pause, self._as_leader(name, duty), name=name, stop=stop)
                )

    def _as_leader(
        self, name: str, duty: Callable[[], Awaitable[object]]
    ) -> Callable[[], Awaitable[object]]:
        async def turn() -> object:
            async with self._database.transaction() as tx:
                if await tx.fetchval(LEADER, f"pagetoll.ledger.{name}"):
                    return await duty()
            return None

        return turn if name in {"retain", "reconcile"} else duty

    async def measure(self) -> None:
        """Reads the gauges that describe the database."""
        async with self._database.connection() as connection:
            await _measure(connection)

    async def reconcile(self) -> list[reconciliation.Verdict]:
        """Proves the whole ledger in one snapshot; a violation is an error in the log."""
        async with self._database.snapshot() as snapshot:
            verdicts = await reconciliation.prove(snapshot)
        for verdict in verdicts:
            metrics.INVARIANT_VIOLATIONS.labels(verdict.invariant).set(verdict.violations)
            if verdict.first is not None:
                log.error(
                    "invariant_broken",
                    invariant=verdict.invariant,
                    violations=verdict.violations,
                    tenant_id=str(verdict.first.tenant_id),
                    subject=verdict.first.subject,
                    detail=verdict.first.detail,
                )
        metrics.RECONCILED_AT.set(clock.now().timestamp())
        return verdicts


async def _measure(connection: Connection) -> None:
    pending = await settlement.pending(connection)
    metrics.SETTLEMENT_PENDING_JOBS.set(pending.jobs)
    metrics.SETTLEMENT_PENDING_SECONDS.set(pending.oldest_seconds)
    metrics.RETENTION_BACKLOG.set(await retention.backlog(connection))
    for kind, credits in (await settlement.credits_by_kind(connection)).items():
        metrics.CREDITS.labels(kind).set(credits)
