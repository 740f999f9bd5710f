"""The loops of the ledger process: settle, expire lots, seal, retain, reconcile."""

import asyncio
from collections.abc import Awaitable, Callable

from accounting import feed, metrics, proofs, retention, seals, settlement, statements
from accounting.reconciliation import Verdict
from runtime import clock, loops
from runtime.content import ContentStore
from runtime.database import Connection, Database
from runtime.settings import Settings

LEADER = "SELECT pg_try_advisory_xact_lock(hashtext($1))"
RECONCILE_SECONDS = 60.0
SEAL_SECONDS = 60.0
METRICS_SECONDS = 5.0
CLOSE_SECONDS = 60.0


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
            ("number_entries", seconds, lambda: feed.number(self._database)),
            ("close_periods", CLOSE_SECONDS, lambda: statements.close_due(self._database)),
            ("measure", METRICS_SECONDS, self.measure),
            ("seal", SEAL_SECONDS, lambda: seals.seal_due(self._database)),
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

        return turn if name == "retain" else duty

    async def measure(self) -> None:
        """Reads the gauges that describe the database."""
        async with self._database.connection() as connection:
            await _measure(connection)

    async def reconcile(self) -> list[Verdict]:
        """Proves what moved, once a night everything; the log and the gauges tell the outcome."""
        proof = await proofs.run_due(self._database, self._store)
        if proof is None:
            return []
        for verdict in proof.verdicts:
            metrics.INVARIANT_VIOLATIONS.labels(verdict.invariant).set(verdict.violations)
        metrics.RECONCILED_AT.set(clock.now().timestamp())
        return proof.verdicts


async def _measure(connection: Connection) -> None:
    pending = await settlement.pending(connection)
    metrics.SETTLEMENT_PENDING_JOBS.set(pending.jobs)
    metrics.SETTLEMENT_PENDING_SECONDS.set(pending.oldest_seconds)
    unsealed = await seals.backlog(connection)
    metrics.UNSEALED_ENTRIES.set(unsealed.entries)
    metrics.SEAL_AGE_SECONDS.set(unsealed.oldest_seconds)
    metrics.RETENTION_BACKLOG.set(await retention.backlog(connection))
    for kind, credits in (await settlement.credits_by_kind(connection)).items():
        metrics.CREDITS.labels(kind).set(credits)
