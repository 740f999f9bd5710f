"""What a caller may do to jobs: submit, pause, resume, extend, retry and cancel them."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import msgspec
import structlog

from accounting import metering, pricing, quotes
from accounting.keys import Principal
from accounting.pricing import Prices, Terms
from accounting.quotes import Quote
from accounting.reserve_groups import ReserveGroups
from accounting.reserving import Enqueued, Seed, Submission
from accounting.tenants import Plan
from gateway import metrics
from jobs import controls, lifecycle, requests, retries, status, urls
from jobs.addresses import AddressPolicy
from jobs.queue import Bell
from jobs.records import Job
from jobs.requests import Extension, JobRequest, PlanLimits
from runtime import clock, ids
from runtime.database import Connection, Database

log = structlog.get_logger()

TRIES_SECONDS = 5.0
"""How long a call that is safe to repeat is repeated while PostgreSQL is away."""
CONTROL_SECONDS = 2.0
"""How long a cancel or a pause waits for the run to let go of its job."""
LOOK_SECONDS = 0.05


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What a submit did, and the job as it was right after it."""

    enqueued: Enqueued
    job: Job


class Commands:
    """The one way in for every API: rules of money and job life are not repeated above it."""

    def __init__(
        self, database: Database, bell: Bell, prices: Prices, *, policy: AddressPolicy
    ) -> None:
        self._database = database
        self._bell = bell
        self._prices = prices
        self._policy = policy
        self._reserves = ReserveGroups(database, seconds=TRIES_SECONDS)

    async def close(self) -> None:
        """Gives up what is being reserved."""
        await self._reserves.close()

    async def submit(
        self, principal: Principal, request: JobRequest, *, idempotency_key: str | None
    ) -> Submitted:
        """Reserves, creates and rings; raises Refusal, and then nothing has moved."""
        target = requests.validate(request, policy=self._policy, limits=limits_of(principal.plan))
        start = urls.canonical_url(target, query=request.query)
        submission = Submission(
            tenant_id=principal.tenant_id,
            job_id=ids.new_id(),
            key_id=principal.key_id,
            request=request,
            seeds=[Seed(url=start, key=urls.url_key(start).hex())],
            idempotency_key=idempotency_key,
        )
        return await self._enqueue(principal, submission)

    async def retry(
        self, principal: Principal, job_id: UUID, *, idempotency_key: str | None
    ) -> Submitted:
        """A new job of the failed URLs that may do better; without a key of its own, made once.

        Raises JobNotFound, or Refusal where the job goes on or has nothing to retry.
        """
        async with self._database.snapshot(principal.tenant_id) as snapshot:
            retry = await retries.of(snapshot, principal.tenant_id, job_id)
        submission = Submission(
            tenant_id=principal.tenant_id,
            job_id=ids.new_id(),
            key_id=principal.key_id,
            request=retry.request,
            seeds=[Seed(url=url, key=key) for url, key in retry.seeds],
            idempotency_key=idempotency_key or retries.key_of(job_id),
            parent_job_id=job_id,
        )
        return await self._enqueue(principal, submission)

    async def _enqueue(self, principal: Principal, submission: Submission) -> Submitted:
        request = submission.request
        agreed = await self.terms(principal, request)
        enqueued = await self._reserves.enqueue(submission, agreed)
        if not enqueued.replayed:
            await self._announce(enqueued, request)
        job = await self.read(principal, enqueued.job_id)
        return Submitted(enqueued=enqueued, job=job)

    async def terms(self, principal: Principal, request: JobRequest) -> Terms:
        """The prices and the ceiling of a request: its quote's, else today's."""
        if request.quote_id is None:
            return pricing.terms(request, await self._prices.of(principal.tenant_id))
        async with self._database.transaction(principal.tenant_id) as tx:
            return await quotes.terms_of(tx, principal.tenant_id, request.quote_id, request)

    async def quote(self, principal: Principal, request: JobRequest, *, resolve: bool) -> Quote:
        """Promises the ceiling of a request; reserves nothing. Raises what a submit would raise."""
        requests.validate(request, policy=self._policy, limits=limits_of(principal.plan))
        agreed = await self.terms(principal, msgspec.structs.replace(request, quote_id=None))
        async with self._database.transaction(principal.tenant_id) as tx:
            made = await quotes.make(tx, principal.tenant_id, request, agreed, resolve=resolve)
        if not resolve:
            return made
        await self._bell.ring(made.quote_id)
        return await self._probed(principal, made)

    async def _probed(self, principal: Principal, made: Quote) -> Quote:
        """The quote with what a worker saw, or without it when none had time to look."""
        until = clock.monotonic() + quotes.PROBE_SECONDS
        while made.probe_state != "done" and clock.monotonic() < until:
            await asyncio.sleep(LOOK_SECONDS)
            async with self._database.transaction(principal.tenant_id) as tx:
                made = await quotes.read(tx, principal.tenant_id, made.quote_id)
        return made

    async def pause(self, principal: Principal, job_id: UUID) -> Job:
        """Lets pages in flight finish and starts no other; raises InvalidState, JobNotFound."""
        await self._control(principal, job_id, controls.pause)
        job = await self._settled(principal, job_id, lambda job: job.state != "pausing")
        log.info("job_paused", job_id=str(job_id), state=job.state)
        return job

    async def resume(self, principal: Principal, job_id: UUID) -> Job:
        """Back into the line with the time that was left; raises InvalidState, JobNotFound."""
        await self._control(principal, job_id, controls.resume)
        await self._bell.ring(job_id)
        log.info("job_resumed", job_id=str(job_id))
        return await self.read(principal, job_id)

    async def extend(
        self, principal: Principal, job_id: UUID, wanted: Extension
    ) -> tuple[Job, int]:
        """The job with its new limits, and the further credits held; raises as metering.extend."""
        limits = limits_of(principal.plan)
        if (wanted.max_pages or 0) > limits.max_pages:
            raise requests.invalid("max_pages", f"the plan permits {limits.max_pages} pages a job")
        if (wanted.timeout_seconds or 0) > limits.max_timeout_seconds:
            raise requests.invalid(
                "timeout_seconds", f"the plan permits {limits.max_timeout_seconds} s"
            )
        moved = await self._database.repeat(
            lambda connection: metering.extend(connection, principal.tenant_id, job_id, wanted),
            seconds=TRIES_SECONDS,
        )
        await self._bell.control(job_id)
        metrics.CREDITS_RESERVED.inc(moved)
        log.info("job_extended", job_id=str(job_id), credits=moved)
        return await self.read(principal, job_id), moved

    async def cancel(self, principal: Principal, job_id: UUID) -> Job:
        """From here on no page is charged; waits a little for a live run to let go."""
        await self._control(principal, job_id, metering.cancel)
        job = await self._settled(principal, job_id, lambda job: lifecycle.is_final(job.state))
        log.info("job_cancelled", job_id=str(job_id), state=job.state)
        return job

    async def _control(
        self,
        principal: Principal,
        job_id: UUID,
        control: Callable[[Connection, UUID, UUID], Awaitable[str]],
    ) -> None:
        await self._database.repeat(
            lambda connection: control(connection, principal.tenant_id, job_id),
            seconds=TRIES_SECONDS,
        )
        await self._bell.control(job_id)

    async def _settled(
        self, principal: Principal, job_id: UUID, is_settled: Callable[[Job], bool]
    ) -> Job:
        """The job when its run has let go of it, or as it is when that takes longer."""
        job = await self.read(principal, job_id)
        until = clock.monotonic() + CONTROL_SECONDS
        while not is_settled(job) and clock.monotonic() < until:
            await asyncio.sleep(LOOK_SECONDS)
            job = await self.read(principal, job_id)
        return job

    async def read(self, principal: Principal, job_id: UUID) -> Job:
        """The job's status at one instant; raises JobNotFound."""
        return await self._database.repeat(
            lambda connection: status.read(connection, principal.tenant_id, job_id),
            seconds=TRIES_SECONDS,
        )

    async def _announce(self, enqueued: Enqueued, request: JobRequest) -> None:
        kind = requests.kind_of(request)
        metrics.JOBS_SUBMITTED.labels(kind).inc()
        metrics.CREDITS_RESERVED.inc(enqueued.credits_reserved)
        log.info(
            "job_submitted",
            job_id=str(enqueued.job_id),
            kind=kind,
            credits=enqueued.credits_reserved,
        )
        await self._bell.ring(enqueued.job_id)


def limits_of(plan: Plan) -> PlanLimits:
    return PlanLimits(
        max_pages=plan.max_pages,
        max_timeout_seconds=plan.max_timeout_seconds,
        may_ignore_robots=plan.may_ignore_robots,
    )
