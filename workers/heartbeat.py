"""Renews a run's lease, and tells the run when it must stop."""

import asyncio

import structlog

from jobs import runs
from jobs.runs import Lease, Renewal
from runtime import clock, loops
from runtime.database import Database
from runtime.errors import Unavailable
from workers.stop_signal import StopSignal

log = structlog.get_logger()

BEATS_A_LEASE = 3


class Heartbeat:
    """One run's proof of life. Trust counts from before each renewal was asked for."""

    def __init__(
        self, database: Database, lease: Lease, stop: StopSignal, *, lease_seconds: float
    ) -> None:
        self._database = database
        self._lease = lease
        self._stop = stop
        self._lease_seconds = lease_seconds
        self._trusted_until = clock.monotonic() + lease_seconds
        self._nudge = asyncio.Event()
        self._deadline: asyncio.TimerHandle | None = None

    def look_now(self) -> None:
        """Somebody has asked something of the job: beat at once."""
        self._nudge.set()

    async def beat(self, deadline_in_seconds: float) -> None:
        """Beats until it is ended with its run; ends itself when the run is cut off."""
        self._set_deadline(deadline_in_seconds)
        try:
            # A run that pauses needs its lease until its pages in flight have finished.
            while not self._stop.cut.is_set():
                await loops.wait(self._nudge, self._lease_seconds / BEATS_A_LEASE)
                self._nudge.clear()
                try:
                    await self._beat_once()
                except Exception:
                    # A run whose heart stops silently would lose its lease without knowing.
                    log.exception("heartbeat_failed")
        finally:
            if self._deadline is not None:
                self._deadline.cancel()

    def _set_deadline(self, seconds: float) -> None:
        """The deadline moves when a job is extended."""
        if self._deadline is not None:
            self._deadline.cancel()
        loop = asyncio.get_running_loop()
        self._deadline = loop.call_later(max(0.0, seconds), self._stop.set, "deadline")

    async def _beat_once(self) -> None:
        asked_at = clock.monotonic()
        try:
            async with self._database.connection() as connection:
                renewal = await runs.renew(
                    connection, self._lease, lease_seconds=self._lease_seconds
                )
        except Unavailable:
            if clock.monotonic() > self._trusted_until:
                log.warning("lease_not_renewed")
                self._stop.set("lease_lost")
            return
        self._trusted_until = asked_at + self._lease_seconds
        self._heed(renewal)

    def _heed(self, renewal: Renewal | None) -> None:
        if renewal is None:
            self._stop.set("lease_lost")
        elif renewal.job_state == "cancelling":
            self._stop.set("cancelled")
        else:
            self._set_deadline(renewal.seconds_left)
            if renewal.job_state == "pausing":
                self._stop.set("paused")
