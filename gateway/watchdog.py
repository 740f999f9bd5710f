"""Ends overdue jobs, frees dead runs, rings again; every gateway may do it at the same time."""

import structlog

from accounting import metering
from gateway import metrics
from jobs import queue, runs
from jobs.queue import Bell
from runtime.database import Database
from runtime.errors import Unavailable

log = structlog.get_logger()

JOBS_A_TURN = 200
UNHEARD_SECONDS = 5.0
"""How long a job waits before it is rung for again."""


class Watchdog:
    """Works with no worker alive: what it does, PostgreSQL decides."""

    def __init__(self, system: Database, bell: Bell) -> None:
        self._system = system
        self._bell = bell

    async def run_once(self) -> None:
        """One turn of every duty; one that fails keeps no other from its turn.

        Raises Unavailable while PostgreSQL is away.
        """
        for duty in (
            self.end_overdue,
            self.free_leases,
            self.resume_funded,
            self.ring_again,
            self.measure,
        ):
            try:
                await duty()
            except Unavailable:
                raise
            except Exception:
                # The log has it; the next turn tries again.
                log.exception("duty_failed", duty=duty.__name__)

    async def end_overdue(self) -> int:
        """Ends jobs past their queue limit or deadline, and stops what may still run of them."""
        async with self._system.connection() as connection:
            ended = await metering.sweep_overdue(connection, limit=JOBS_A_TURN)
        for one in ended:
            if one.fault is not None:
                log.error("job_not_ended", job_id=str(one.job), fault=one.fault)
                continue
            metrics.JOBS_OVERDUE.labels(one.reason).inc()
            log.warning(
                "job_overdue",
                tenant_id=str(one.tenant),
                job_id=str(one.job),
                reason=one.reason,
            )
            await self._bell.control(one.job)
        return sum(one.fault is None for one in ended)

    async def free_leases(self) -> int:
        """Gives the jobs of silent runs to whoever claims them next."""
        async with self._system.connection() as connection:
            freed = await runs.free_leases(connection, limit=JOBS_A_TURN)
        for tenant_id, job_id, owner in freed:
            metrics.LEASES_FREED.inc()
            log.warning("lease_freed", tenant_id=str(tenant_id), job_id=str(job_id), owner=owner)
            await self._bell.ring(job_id)
        return len(freed)

    async def resume_funded(self) -> int:
        """Lets jobs that waited for credits go on where there are some."""
        async with self._system.connection() as connection:
            resumed = await metering.resume_funded(connection, limit=JOBS_A_TURN)
        for one in resumed:
            if one.fault is not None:
                log.error("job_not_resumed", job_id=str(one.job), fault=one.fault)
                continue
            log.info("job_resumed", tenant_id=str(one.tenant), job_id=str(one.job))
            await self._bell.ring(one.job)
        return sum(one.fault is None for one in resumed)

    async def ring_again(self) -> int:
        """Rings for jobs that nobody has claimed for a while: a hint was lost, or all are busy."""
        async with self._system.connection() as connection:
            unheard = await queue.unrung(connection, seconds=UNHEARD_SECONDS, limit=JOBS_A_TURN)
        for job_id in unheard:
            metrics.RINGS_REPEATED.inc()
            await self._bell.ring(job_id)
        if unheard:
            log.info("rung_again", jobs=len(unheard))
        return len(unheard)

    async def measure(self) -> None:
        async with self._system.connection() as connection:
            waiting = await queue.waiting(connection)
        metrics.QUEUED_JOBS.set(waiting.queued)
        metrics.RUNNING_JOBS.set(waiting.running)
        metrics.QUEUE_OLDEST_SECONDS.set(waiting.oldest_seconds)
