"""Makes what tests begin with: tenants with credits, keys, plans, submissions, jobs."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from accounting import keys, ledger, lots, metering, pricing, tenants
from accounting.keys import CUSTOMER_SCOPES
from accounting.ledger import Balance
from accounting.lots import Grant
from accounting.metering import Seed, Submission
from accounting.tenants import Plan, Tenant
from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.requests import CrawlRequest
from jobs.vocabulary import Scope
from runtime import ids
from runtime.database import Database

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
        book = await pricing.current(connection)
        enqueued = await metering.enqueue(connection, a_submission(tenant_id, **fields), book)
    return enqueued.job_id


async def balance_of(system: Database, tenant_id: UUID) -> Balance:
    async with system.connection() as connection:
        return await ledger.balance(connection, tenant_id)


def canonical(url: str) -> str:
    return urls.canonical_url(urls.parse_target(url, policy=OPEN))
