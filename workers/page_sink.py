"""Settles finished pages in small batches, each in one transaction, its segment before it."""

import asyncio
from collections.abc import Callable

import msgspec
import structlog

from accounting import metering, pricing, retention
from accounting.metering import Flush, Flushed
from jobs.outcomes import Facts, Found, PageOutcome
from jobs.records import JobWarning
from jobs.runs import Run
from runtime import clock, content, database, ids, loops
from runtime.content import ContentStore
from runtime.database import Connection, Database
from workers import metrics
from workers.engine.visit import Visit
from workers.job_frontier import JobFrontier
from workers.stop_signal import StopSignal

log = structlog.get_logger()

SEGMENT_NAME_LENGTH = 12
FOUND_A_CALL = 2_000


class LostRun(Exception):
    """The job is not this run's any more; what it has not settled is thrown away."""


class FlushRule(msgspec.Struct, frozen=True, kw_only=True):
    """By size or by age, whichever comes first; a write is repeated for `patience_seconds`."""

    pages: int
    seconds: float
    patience_seconds: float


class PageSink:
    """Collects one run's visits. One batch is written at a time, so that flushes keep order."""

    def __init__(
        self,
        database: Database,
        store: ContentStore,
        run: Run,
        rule: FlushRule,
        stop: StopSignal,
    ) -> None:
        self._database = database
        self._store = store
        self._run = run
        self._rule = rule
        self._stop = stop
        self._waiting: list[Visit] = []
        self._found_waiting = 0
        self._writing = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[bool] | None = None
        self._on_settled: Callable[[], None] = lambda: None
        self._frontier: JobFrontier | None = None
        self._facts = Facts()
        self.settled_at = clock.monotonic()
        """When the last batch was committed, on the monotonic clock."""

    def call_after_settling(self, listener: Callable[[], None]) -> None:
        self._on_settled = listener

    def refill(self, frontier: JobFrontier) -> None:
        """From now on each batch claims, in its transaction, what this frontier has room for."""
        self._frontier = frontier

    def tell(self, warning: JobWarning) -> None:
        """A warning that goes out with the next batch."""
        self._facts = msgspec.structs.replace(
            self._facts, warnings=[*self._facts.warnings, warning]
        )

    def tell_round_limit(self) -> None:
        self._facts = msgspec.structs.replace(self._facts, round_limit_met=True)

    async def add(self, visit: Visit) -> None:
        """Takes a page. Waits while a whole batch waits for the one being written."""
        self._raise_failed_flush()
        self._waiting.append(visit)
        self._found_waiting += len(visit.found)
        if not self._is_short():
            await self._flush_in_progress()
        if self._is_short():
            self._set_timer()
        else:
            self._start_flush()

    async def settle(self) -> bool:
        """Writes all that waits; whether that was anything, or was being written when asked."""
        self._raise_failed_flush()
        waited = await self._flush_in_progress()
        return await self._flush(whole_batches=False) or waited

    async def tell_now(self) -> None:
        """Sends out what was told since the last batch, where there is no page to go with it."""
        facts, self._facts = self._facts, Facts()
        await self.settle_found([], facts)

    async def settle_found(self, found: list[Found], facts: Facts) -> None:
        """Writes discovered URLs of no page, such as a sitemap's, in bounded calls."""
        for start in range(0, len(found), FOUND_A_CALL) or [0]:
            async with self._writing:
                await self._write([], found[start : start + FOUND_A_CALL], facts)
            facts = Facts()

    async def close(self) -> None:
        """Ends the timer and a flush; what is not settled is thrown away."""
        if self._timer is not None:
            self._timer.cancel()
        if self._flushing is not None:
            await loops.end(self._flushing)

    def _set_timer(self) -> None:
        if self._waiting and self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._rule.seconds, self._start_flush)

    def _start_flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush())

    async def _flush_in_progress(self) -> bool:
        """Waits for the batch being written, whether there was one; a cut-off waiter leaves it."""
        if self._flushing is None or self._flushing.done():
            return False
        await asyncio.wait({self._flushing})
        self._raise_failed_flush()
        return True

    def _raise_failed_flush(self) -> None:
        if self._flushing is not None and self._flushing.done():
            self._flushing.result()

    async def _flush(self, *, whole_batches: bool = True) -> bool:
        """Writes what waits; what comes meanwhile is left for the timer if less than a batch."""
        wrote = False
        async with self._writing:
            while self._waiting and not (wrote and whole_batches and self._is_short()):
                batch = self._waiting[: self._rule.pages]
                del self._waiting[: self._rule.pages]
                self._found_waiting = sum(len(visit.found) for visit in self._waiting)
                facts, self._facts = self._facts, Facts()
                await self._write_or_split(batch, facts)
                wrote = True
                self._on_settled()
        self._set_timer()
        return wrote

    def _is_short(self) -> bool:
        return len(self._waiting) < self._rule.pages and self._found_waiting <= FOUND_A_CALL

    async def _write_or_split(self, batch: list[Visit], facts: Facts) -> None:
        """Writes a batch; where one page of it cannot be stored, that page alone fails."""
        found = [one for visit in batch for one in visit.found]
        try:
            # More than one call's worth of discoveries goes ahead of the pages that made them: a
            # crash in between fetches those pages again, and then finds nothing new.
            while len(found) > FOUND_A_CALL:
                await self._write([], found[:FOUND_A_CALL], Facts())
                del found[:FOUND_A_CALL]
            await self._write(batch, found, facts)
        except database.UNSTORABLE:
            log.exception("batch_not_storable", pages=len(batch))
            if len(batch) > 1:
                for visit in batch:
                    await self._write_or_split([visit], facts)
                    facts = Facts()
            elif batch:
                await self._write([_unstorable(batch[0])], [], facts)

    async def _write(self, batch: list[Visit], found: list[Found], facts: Facts) -> None:
        began = clock.monotonic()
        outcomes = await self._store_segment(batch)

        flush = Flush(outcomes=outcomes, found=found, facts=facts)
        flushed = await self._settle_and_claim(flush)
        if flushed.answer != "settled":
            metrics.LATE_PAGES.inc(len(batch))
            self._stop.set("cancelled" if flushed.answer == "cancelled" else "lease_lost")
            raise LostRun(flushed.answer)
        self.settled_at = clock.monotonic()
        if batch:
            self._measure(outcomes, clock.monotonic() - began)

    async def _settle_and_claim(self, flush: Flush) -> Flushed:
        frontier = None if self._stop.event.is_set() or not flush.outcomes else self._frontier
        take, by_level = (frontier.room(), frontier.by_level) if frontier else (0, False)

        async def call(connection: Connection) -> Flushed:
            return await metering.settle_and_claim(
                connection, self._run.lease, self._run.prices, flush, take=take, by_level=by_level
            )

        # Repeated after a lost answer, it claims others: the first ones stay in flight and the next
        # run takes them.
        flushed = await self._database.repeat(call, seconds=self._rule.patience_seconds)
        if frontier is not None:
            frontier.stock(flushed.claims)
        return flushed

    async def _store_segment(self, batch: list[Visit]) -> list[PageOutcome]:
        """One object a batch, written before the transaction that names it."""
        contents = [visit.content for visit in batch if visit.content is not None]
        if not contents:
            return [visit.outcome for visit in batch]
        lease = self._run.lease
        folder = retention.segment_prefix(lease.tenant_id, lease.job_id)
        name = f"{folder}{lease.token}-{ids.random_text(SEGMENT_NAME_LENGTH)}"
        segment = b"".join(contents)
        await loops.repeat(
            lambda: self._store.put(name, segment),
            seconds=self._rule.patience_seconds,
            what="content store",
        )
        return _placed(batch, name)

    def _measure(self, outcomes: list[PageOutcome], seconds: float) -> None:
        metrics.FLUSH_SECONDS.observe(seconds)
        metrics.FLUSH_PAGES.observe(len(outcomes))
        for outcome in outcomes:
            metrics.PAGES.labels(outcome.status, outcome.reason or "").inc()
            metrics.PAGE_SECONDS.observe((outcome.duration_ms or 0) / 1000)
        credits = sum(
            pricing.page_credits(outcome.status, outcome.outcome, self._run.prices)
            for outcome in outcomes
        )
        metrics.CREDITS_CHARGED.inc(credits)
        log.debug("pages_settled", pages=len(outcomes), credits=credits)


def _unstorable(visit: Visit) -> Visit:
    """The page as a failure, with nothing of what the site said about it."""
    outcome = PageOutcome(
        page_no=visit.outcome.page_no, status="failed", reason="internal_error", detail="unstorable"
    )
    return Visit(outcome=outcome)


def _placed(batch: list[Visit], segment: str) -> list[PageOutcome]:
    outcomes = []
    offset = 0
    for visit in batch:
        if visit.content is None:
            outcomes.append(visit.outcome)
            continue
        length = len(visit.content)
        outcomes.append(
            msgspec.structs.replace(
                visit.outcome,
                segment=segment,
                segment_offset=offset,
                segment_length=length,
                content_bytes=content.expanded_bytes(visit.content),
            )
        )
        offset += length
    return outcomes
