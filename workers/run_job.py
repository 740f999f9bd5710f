"""Runs one leased job from claim to finish."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from accounting import metering, tenants
from jobs import controls, lifecycle, retries, runs
from jobs.controls import PauseEnd
from jobs.records import JobError
from jobs.runs import Run, Standing
from jobs.vocabulary import CompletionReason
from runtime import clock, loops
from runtime.database import Connection
from runtime.errors import Unavailable
from workers import crawl_parts, metrics
from workers.crawl_parts import RunParts
from workers.heartbeat import Heartbeat
from workers.page_sink import FlushRule, LostRun, PageSink
from workers.parts import Parts
from workers.stop_signal import StopSignal

log = structlog.get_logger()
T = TypeVar("T")

SHUTDOWN_GRACE_SECONDS = 1.5
"""So that another worker goes on within two seconds; most pages that are on their way come in."""


class JobRun:
    """One run: it may be told to stop, and is told to look at what somebody asked of the job."""

    def __init__(self, parts: Parts, run: Run) -> None:
        self.job_id = run.lease.job_id
        self._parts = parts
        self._run = run
        self._stop = StopSignal()
        self._sink: PageSink | None = None
        self._heartbeat = Heartbeat(
            parts.database, run.lease, self._stop, lease_seconds=parts.settings.lease_seconds
        )

    def look_now(self) -> None:
        self._heartbeat.look_now()

    def shut_down(self) -> None:
        self._stop.set("shutdown")

    async def run(self) -> bool:
        """Ends with the job finished, handed back, or lost; never raises but when cancelled.

        False when a server that runs stand on was away: whoever claims next should wait a little.
        """
        structlog.contextvars.bind_contextvars(
            job_id=str(self.job_id), tenant_id=str(self._run.lease.tenant_id)
        )
        metrics.QUEUE_AGE_SECONDS.observe(self._run.waited_seconds)
        log.info("run_started", kind=self._run.kind)
        stands = True
        beating = asyncio.create_task(self._heartbeat.beat(self._run.seconds_left))
        try:
            ended = await self._crawl_to_the_end()
        except LostRun:
            ended = await self._end_lost()
        except Unavailable as error:
            log.warning("run_given_up", why=str(error))
            stands = False
            ended = await self._hand_back()
        except Exception:
            # A fault of ours ends this job, not the worker; the customer gets the credits back.
            log.exception("run_failed")
            ended = await self._finish("internal_failure")
        finally:
            await loops.end(beating)
        metrics.RUNS_ENDED.labels(ended).inc()
        log.info("run_ended", how=ended)
        return stands

    async def _crawl_to_the_end(self) -> str:
        sink = self._sink = self._new_sink()
        try:
            made = await self._assemble(sink)
            reading = asyncio.create_task(crawl_parts.read_sitemaps(self._parts, self._run, made))
            if not await self._or_stopped(reading):
                return await self._end_stopped(sink)
            exhausted = await made.crawl.run(self._grace_seconds, cut=self._stop.cut)
            if not exhausted:
                return await self._end_stopped(sink)
            return await self._end_exhausted(made)
        finally:
            await sink.close()

    async def _assemble(self, sink: PageSink) -> RunParts:
        async with self._parts.database.connection() as connection:
            plan = await tenants.plan_of(connection, self._run.lease.tenant_id)
        return await crawl_parts.assemble(self._parts, self._run, plan, sink, self._stop)

    async def _or_stopped(self, work: "asyncio.Task[None]") -> bool:
        """Whether the work was done before the run was stopped; raises what the work raises."""
        stopping = asyncio.create_task(self._stop.event.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            await loops.end(work, stopping)
        if work.cancelled():
            return False
        work.result()
        return True

    def _grace_seconds(self) -> float:
        match self._stop.reason:
            case "shutdown":
                return SHUTDOWN_GRACE_SECONDS
            case "paused":
                # No page that is being fetched takes longer.
                return float(self._run.request.page_timeout_seconds)
        return 0.0

    async def _end_stopped(self, sink: PageSink) -> str:
        match self._stop.reason:
            case "deadline":
                await sink.settle()
                return await self._finish("deadline")
            case "shutdown":
                await sink.settle()
                return await self._hand_back()
            case "paused":
                await sink.settle()
                return await self._end_pause(lambda c: controls.end_pause(c, self._run.lease))
            case _:
                return await self._end_lost()

    async def _end_lost(self) -> str:
        """A cancel ends the job here; a lost lease leaves it to whoever has it now."""
        if self._stop.reason == "cancelled":
            return await self._finish("cancelled")
        metrics.LEASES_LOST.inc()
        return "lease_lost"

    async def _end_exhausted(self, made: RunParts) -> str:
        if made.discovery.round_limit_met:
            made.sink.tell_round_limit()
            await made.sink.tell_now()
        standing = await self._repeat(lambda c: runs.standing(c, self._run.lease))
        if standing.state == "cancelling":
            return await self._finish("cancelled")
        if standing.queued + standing.in_flight:
            return await self._end_with_open_pages(standing)
        reason = lifecycle.exhausted(
            succeeded=standing.succeeded,
            page_limit_met=standing.page_limit_met,
            round_limit_met=standing.round_limit_met,
        )
        error = start_error(standing) if reason == "upstream_failure" else None
        return await self._finish(reason, error, extensions=standing.extensions)

    async def _end_with_open_pages(self, standing: Standing) -> str:
        """URLs are queued and none may be claimed: the money is spoken for, or the time is up."""
        extensions = standing.extensions
        if standing.outstanding < max(self._run.prices.values()):
            if standing.may_grow and self._run.request.when_out_of_credits == "pause":
                return await self._end_pause(
                    lambda c: controls.pause_for_budget(c, self._run.lease, extensions=extensions)
                )
            return await self._finish("budget", extensions=extensions)
        if self._stop.reason == "deadline":
            return await self._finish("deadline")
        # Claimed by a call whose answer was lost: another run takes them from the start.
        return await self._hand_back()

    async def _end_pause(self, call: Callable[[Connection], Awaitable[PauseEnd]]) -> str:
        answer = await self._repeat(call)
        if answer == "cancelled":
            return await self._finish("cancelled")
        if answer == "unfinished":
            return await self._hand_back()
        if answer == "stale":
            metrics.LEASES_LOST.inc()
            return "lease_lost"
        return answer

    async def _finish(
        self,
        reason: CompletionReason,
        error: JobError | None = None,
        *,
        extensions: int | None = None,
    ) -> str:
        seen = self._run.extensions if extensions is None else extensions
        answer = await self._repeat(
            lambda c: metering.finish(c, self._run.lease, reason, error, extensions=seen)
        )
        if answer == "unfinished":
            return await self._hand_back()
        if self._sink is not None and answer == "finished":
            metrics.SETTLEMENT_SECONDS.observe(clock.monotonic() - self._sink.settled_at)
        return reason if answer != "stale" else "lease_lost"

    async def _hand_back(self) -> str:
        try:
            await self._repeat(lambda c: runs.hand_back(c, self._run.lease))
        except Unavailable:
            log.warning("hand_back_left_to_the_watchdog")
        return "handed_back"

    async def _repeat(self, call: Callable[[Connection], Awaitable[T]]) -> T:
        return await self._parts.database.repeat(call, seconds=self._parts.settings.lease_seconds)

    def _new_sink(self) -> PageSink:
        settings = self._parts.settings
        rule = FlushRule(
            pages=settings.flush_pages,
            seconds=settings.flush_seconds,
            patience_seconds=settings.lease_seconds,
        )
        return PageSink(self._parts.database, self._parts.store, self._run, rule, self._stop)


def start_error(standing: Standing) -> JobError:
    """Why nothing came of a job: what became of its start URL."""
    reason = standing.first_reason or "upstream_error"
    status = f" (HTTP {standing.first_status})" if standing.first_status else ""
    detail = f", {standing.first_detail}" if standing.first_detail else ""
    return JobError(
        reason=reason,
        message=f"the start URL gave no page: {reason}{detail}{status}",
        retryable=reason in retries.RETRYABLE,
    )
