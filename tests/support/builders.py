"""Makes what tests begin with: tenants with credits, keys, plans, submissions, jobs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from accounting import budgets, keys, ledger, lots, metering, pricing, reserving, tenants
from accounting.budgets import BudgetRequest
from accounting.keys import CUSTOMER_SCOPES
from accounting.ledger import Balance
from accounting.lots import Grant
from accounting.reserving import Seed, Submission
from accounting.tenants import Plan, Tenant
from jobs import runs, urls
from jobs.addresses import AddressPolicy
from jobs.outcomes import Facts, Found, PageOutcome
from jobs.requests import CrawlRequest
from jobs.runs import Run
from jobs.vocabulary import PageStatus, Scope
from runtime import ids
from runtime.database import Connection, Database

KEY_ID = "testkey00000"
OPEN = AddressPolicy.of(["127.0.0.0/8", "::1/128"])


async def a_tenant(
    system: Database, *, credits: int = 0, plan: str = "local", name: str = "A tenant"
) -> Tenant:
    async with system.transaction() as tx:
        tenant = await tenants.create(tx, name=name, plan_id=plan)
    if credits:
        await a_grant(system, tenant.tenant_id, credits)
    return tenant


async def a_grant(system: Database, tenant_id: UUID, amount: int, **fields: Any) -> UUID:
    wanted = Grant(amount=amount, source="grant", op_key=f"test:{ids.new_id()}", **fields)
    async with system.connection() as connection:
        lot_id, _ = await lots.grant(connection, tenant_id, wanted)
    return lot_id


async def a_budget(system: Database, tenant_id: UUID, **fields: Any) -> UUID:
    """A cap, on the whole tenant's month unless the fields say otherwise."""
    wanted = BudgetRequest(**({"node": "tenant", "period": "month", "cap": 100} | fields))
    async with system.transaction() as tx:
        return await budgets.put(tx, tenant_id, wanted)


async def a_key(
    system: Database, tenant_id: UUID, *, scopes: Sequence[Scope] = CUSTOMER_SCOPES
) -> str:
    """The whole key, as a customer sends it."""
    async with system.transaction(tenant_id) as tx:
        _, key = await keys.create(tx, tenant_id, name="test", scopes=scopes)
    return key


async def a_plan(system: Database, **changes: Any) -> Plan:
    """A plan of its own that is `local` but for the changes."""
    async with system.connection() as connection:
        local = next(plan for plan in await tenants.plans(connection) if plan.plan_id == "local")
        plan_id = f"test-{ids.random_text(12).lower()}"
        return await tenants.put_plan(
            connection, msgspec.structs.replace(local, plan_id=plan_id, **changes)
        )


def a_submission(
    tenant_id: UUID,
    *,
    url: str = "https://example.com/",
    max_pages: int = 10,
    seeds: Sequence[str] = (),
    idempotency_key: str | None = None,
    **options: Any,
) -> Submission:
    """A crawl ready to be reserved; `seeds` are canonical URLs, by default the start URL."""
    return Submission(
        tenant_id=tenant_id,
        job_id=ids.new_id(),
        key_id=KEY_ID,
        request=CrawlRequest(url=url, max_pages=max_pages, **options),
        seeds=[Seed(url=seed, key=urls.url_key(seed).hex()) for seed in seeds or [canonical(url)]],
        idempotency_key=idempotency_key,
    )


async def a_job(database: Database, tenant_id: UUID, **fields: Any) -> UUID:
    """A queued job with its hold; takes what a_submission takes."""
    async with database.connection() as connection:
        submission = a_submission(tenant_id, **fields)
        agreed = pricing.terms(submission.request, await pricing.current(connection))
        enqueued = await reserving.enqueue(connection, submission, agreed)
    return enqueued.job_id


async def balance_of(system: Database, tenant_id: UUID) -> Balance:
    async with system.connection() as connection:
        return await ledger.balance(connection, tenant_id)


def canonical(url: str) -> str:
    return urls.canonical_url(urls.parse_target(url, policy=OPEN))


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """What a tenant has in the tables that a submit writes."""

    jobs: int
    holds: int
    transfers: int
    available: int


async def footprint(system: Database, tenant_id: UUID) -> Footprint:
    async with system.snapshot() as snapshot:
        row = await snapshot.fetchrow(
            """
            SELECT (SELECT count(*) FROM job WHERE tenant_id = $1) AS jobs,
                   (SELECT count(*) FROM hold WHERE tenant_id = $1) AS holds,
                   (SELECT count(*) FROM transfer WHERE tenant_id = $1) AS transfers,
                   available
            FROM account WHERE tenant_id = $1
            """,
            tenant_id,
        )
    assert row is not None
    return msgspec.convert(dict(row), Footprint)


async def claimed(connection: Connection, job_id: UUID, *, seconds: float = 60) -> Run:
    """A run of this job, which must be the next that may start."""
    run = await runs.claim_job(connection, "test-worker", lease_seconds=seconds)
    while run is not None and run.lease.job_id != job_id:
        run = await runs.claim_job(connection, "test-worker", lease_seconds=seconds)
    assert run is not None, "the job was not given out"
    return run


async def finished_pages(
    connection: Connection, run: Run, outcomes: Sequence[PageStatus], **fields: Any
) -> None:
    """Settles pages of a run as if they had been fetched, admitting as many as are needed."""
    found = [
        Found(key=urls.url_key(url).hex(), url=url, depth=1, source="link", found_on=0)
        for url in (f"https://example.com/{number}" for number in range(1, len(outcomes)))
    ]
    await metering.settle_pages(connection, run.lease, run.prices, [], found, Facts())
    claims = await runs.claim_pages(connection, run.lease, limit=len(outcomes), by_level=False)
    settled = [
        PageOutcome(
            page_no=claim.page_no,
            status=outcome,
            reason=None if outcome == "succeeded" else "not_found",
            http_status=200 if outcome == "succeeded" else 404,
            **fields,
        )
        for claim, outcome in zip(
            sorted(claims, key=lambda one: one.page_no), outcomes, strict=True
        )
    ]
    answer = await metering.settle_pages(connection, run.lease, run.prices, settled, [], Facts())
    assert answer == "settled"
