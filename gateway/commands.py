"""What a caller may do to jobs: submit one, cancel one."""

import asyncio
from uuid import UUID

import msgspec
import structlog

from accounting import metering, pricing, quotes
from accounting.keys import Principal
from accounting.metering import Enqueued, Seed, Submission
from accounting.pricing import Prices, Terms
from accounting.quotes import Quote
from accounting.tenants import Plan
from gateway import metrics
from jobs import lifecycle, requests, status, urls
from jobs.addresses import AddressPolicy
from jobs.queue import Bell
from jobs.records import Job
from jobs.requests import JobRequest, PlanLimits
from runtime import clock, ids
from runtime.database import Database

log = structlog.get_logger()

TRIES_SECONDS = 5.0
"""How long a call that is safe to repeat is repeated while PostgreSQL is away."""
CANCEL_SECONDS = 2.0
"""How long a cancel waits for the run to hand its job back."""
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
        agreed = await self.terms(principal, request)
        enqueued = await self._database.repeat(
            lambda connection: metering.enqueue(connection, submission, agreed),
            seconds=TRIES_SECONDS,
        )
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

    async def cancel(self, principal: Principal, job_id: UUID) -> Job:
        """From here on no page is charged; waits a little for a live run to let go."""
        await self._database.repeat(
            lambda connection: metering.cancel(connection, principal.tenant_id, job_id),
            seconds=TRIES_SECONDS,
        )
        await self._bell.control(job_id)
        job = await self.read(principal, job_id)
        until = clock.monotonic() + CANCEL_SECONDS
        while not lifecycle.is_final(job.state) and clock.monotonic() < until:
            await asyncio.sleep(LOOK_SECONDS)
            job = await self.read(principal, job_id)
        log.info("job_cancelled", job_id=str(job_id), state=job.state)
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
