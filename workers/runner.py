"""Claims jobs as slots come free; a ring only shortens the wait."""

import asyncio
from collections.abc import Callable
from uuid import UUID

import msgspec
import structlog

from jobs import queue, runs
from runtime import clock, ids, loops, redis
from runtime.errors import Unavailable
from runtime.redis import Signals
from workers import metrics
from workers.parts import Parts
from workers.run_job import JobRun

log = structlog.get_logger()

LOOK_SECONDS = 2.0
"""How long a free slot waits for a ring before it looks by itself."""
OWNER_LENGTH = 16
RELISTEN_SECONDS = 1.0
GIVEN_UP_PAUSE_SECONDS = 10.0


class Runner:
    """One worker process: so many slots, each with a job of its own."""

    def __init__(
        self, parts: Parts, signals: Signals, *, also_ring: Callable[[], None] = lambda: None
    ) -> None:
        """`also_ring` is called at each ring heard: it may not be for a job."""
        self._also_ring = also_ring
        self._parts = parts
        self._signals = signals
        self._slots = parts.settings.worker_slots
        self._running: dict[UUID, tuple[JobRun, asyncio.Task[bool]]] = {}
        self._ring = asyncio.Event()
        self._paused_until = 0.0
        # Random for each start, so that a restarted worker never keeps its former self alive.
        self.owner = f"worker-{ids.random_text(OWNER_LENGTH)}"

    def ring(self) -> None:
        """There may be something to do."""
        self._ring.set()

    async def serve(self, stop: asyncio.Event) -> None:
        """Claims and runs until `stop`; then lets runs settle and hand back what they have."""
        listening = asyncio.create_task(self._listen())
        stopping = asyncio.create_task(self._ring_at(stop))
        try:
            while not stop.is_set():
                self._ring.clear()
                if self._has_room() and await self._claim():
                    continue
                await loops.wait(self._ring, LOOK_SECONDS)
        finally:
            await self._shut_down()
            await loops.end(listening, stopping)

    def _has_room(self) -> bool:
        return len(self._running) < self._slots and clock.monotonic() >= self._paused_until

    async def _ring_at(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._ring.set()

    async def _claim(self) -> bool:
        try:
            async with self._parts.database.connection() as connection:
                run = await runs.claim_job(
                    connection, self.owner, lease_seconds=self._parts.settings.lease_seconds
                )
        except Unavailable as error:
            log.warning("claim_postponed", why=str(error))
            return False
        except (msgspec.ValidationError, KeyError):
            # Submitted by newer code, of which a worker will claim it when this lease is over.
            log.exception("job_not_understood")
            return False
        if run is None:
            return False
        job = JobRun(self._parts, run)
        task = asyncio.create_task(job.run())
        self._running[job.job_id] = (job, task)
        metrics.RUNS.set(len(self._running))
        task.add_done_callback(lambda _: self._ended(job.job_id))
        return True

    def _ended(self, job_id: UUID) -> None:
        _, task = self._running.pop(job_id)
        metrics.RUNS.set(len(self._running))
        if not task.cancelled() and task.exception() is not None:
            log.error("run_crashed", job_id=str(job_id), exc_info=task.exception())
        elif not task.cancelled() and not task.result():
            # Claimed again at once, the job would fetch the same pages over and over.
            self._paused_until = clock.monotonic() + GIVEN_UP_PAUSE_SECONDS
        self._ring.set()

    async def _listen(self) -> None:
        """Hears rings and controls; while Redis is away slots look by themselves."""
        while True:
            try:
                await self._hear()
            except redis.LOST as error:
                log.warning("hints_not_heard", error=str(error))
            await asyncio.sleep(RELISTEN_SECONDS)

    async def _hear(self) -> None:
        async with self._signals.listen([queue.BELL, queue.CONTROL]) as hints:
            self._ring.set()
            async for channel, text in hints:
                self._heed(channel, text)

    def _heed(self, channel: str, text: str) -> None:
        if channel == queue.BELL:
            self._ring.set()
            self._also_ring()
            return
        for job_id, (job, _) in self._running.items():
            if str(job_id) == text:
                job.look_now()

    async def _shut_down(self) -> None:
        jobs = list(self._running.values())
        for job, _ in jobs:
            job.shut_down()
        if jobs:
            tasks = [task for _, task in jobs]
            _, late = await asyncio.wait(tasks, timeout=self._parts.settings.drain_seconds)
            await loops.end(*late)
            for job, _ in jobs:
                await self._signals.hint(queue.BELL, str(job.job_id))
