"""Prices and quotes: frozen, exact, and never exceeded."""

import msgspec
import pytest

from accounting import pricing, quotes, reserving
from accounting.pricing import PriceLine
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, work

EXPENSIVE = PriceLine(kind="crawl", outcome="page", credits=7)
CHEAP = PriceLine(kind="crawl", outcome="page", credits=1)


async def publish(system: Database, line: PriceLine) -> None:
    async with system.transaction() as tx:
        await pricing.publish(tx, [line])


async def quote(app: Database, tenant_id, submission):
    async with app.transaction(tenant_id) as tx:
        agreed = pricing.terms(submission.request, await pricing.of_tenant(tx, tenant_id))
        return await quotes.make(tx, tenant_id, submission.request, agreed, resolve=False)


async def submit_with(app: Database, submission, quote_id):
    request = msgspec.structs.replace(submission.request, quote_id=quote_id)
    async with app.transaction(submission.tenant_id) as tx:
        agreed = await quotes.terms_of(tx, submission.tenant_id, quote_id, request)
    async with app.connection() as connection:
        return await reserving.enqueue(
            connection, msgspec.structs.replace(submission, request=request), agreed
        )


async def test_a_quote_is_the_ceiling_and_moves_nothing(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)

    made = await quote(app, tenant.tenant_id, builders.a_submission(tenant.tenant_id, max_pages=50))

    assert (made.ceiling, [(line.outcome, line.credits) for line in made.lines]) == (
        50,
        [("page", 1)],
    )
    assert (made.expires_at - made.created_at).total_seconds() == 15 * 60
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 5


async def test_a_quote_freezes_the_price_while_the_book_changes(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submission = builders.a_submission(tenant.tenant_id, max_pages=10)
    made = await quote(app, tenant.tenant_id, submission)
    await publish(system, EXPENSIVE)

    enqueued = await submit_with(app, submission, made.quote_id)
    await publish(system, CHEAP)

    assert enqueued.credits_reserved == 10
    run = await work.claim(system)
    assert (run.prices, run.lease.job_id) == ({"page": 1}, submission.job_id)


async def test_a_quote_is_for_one_request_alone(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    made = await quote(app, tenant.tenant_id, builders.a_submission(tenant.tenant_id, max_pages=10))

    with pytest.raises(Refusal, match="quote"):
        await submit_with(app, builders.a_submission(tenant.tenant_id, max_pages=11), made.quote_id)


async def test_a_quote_is_over_after_fifteen_minutes(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    submission = builders.a_submission(tenant.tenant_id, max_pages=10)
    made = await quote(app, tenant.tenant_id, submission)
    request = msgspec.structs.replace(submission.request, quote_id=made.quote_id)
    async with app.transaction(tenant.tenant_id) as tx:
        agreed = await quotes.terms_of(tx, tenant.tenant_id, made.quote_id, request)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE quote SET expires_at = expires_at - interval '15 min' WHERE quote_id = $1",
            made.quote_id,
        )

    with pytest.raises(Refusal, match="quote"):
        await submit_with(app, submission, made.quote_id)
    # Even with terms that were read in time: the database decides at the reserve.
    with pytest.raises(Refusal, match="quote"):
        async with app.connection() as connection:
            await reserving.enqueue(
                connection, msgspec.structs.replace(submission, request=request), agreed
            )
    assert (await builders.balance_of(system, tenant.tenant_id)).held == 0


async def test_another_tenants_quote_is_no_quote(app: Database, system: Database) -> None:
    mine, theirs = [await builders.a_tenant(system, credits=1_000) for _ in range(2)]
    made = await quote(app, theirs.tenant_id, builders.a_submission(theirs.tenant_id, max_pages=10))

    with pytest.raises(Refusal):
        await submit_with(app, builders.a_submission(mine.tenant_id, max_pages=10), made.quote_id)


async def test_a_tenants_own_price_goes_before_the_books(app: Database, system: Database) -> None:
    tenant, other = [await builders.a_tenant(system, credits=1_000) for _ in range(2)]
    line = PriceLine(kind="crawl", outcome="page", credits=3)
    async with system.transaction() as tx:
        await pricing.set_override(tx, tenant.tenant_id, line, reason="agreed", actor="clerk")

    async with system.connection() as connection:
        own = await pricing.of_tenant(connection, tenant.tenant_id)
        plain = await pricing.of_tenant(connection, other.tenant_id)
    request = builders.a_submission(tenant.tenant_id, max_pages=10).request

    assert (pricing.terms(request, own).ceiling, pricing.terms(request, plain).ceiling) == (30, 10)
    async with system.transaction() as tx:
        await pricing.drop_override(tx, tenant.tenant_id, "crawl", "page")
        assert await pricing.of_tenant(tx, tenant.tenant_id) == plain


async def test_no_hold_grows_beyond_its_ceiling(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    job_id = await builders.a_job(app, tenant.tenant_id, max_pages=10)

    with pytest.raises(Exception, match="never_over_the_quoted_ceiling"):
        async with system.transaction() as tx:
            await tx.execute("UPDATE hold SET reserved = reserved + 1 WHERE hold_id = $1", job_id)


@pytest.mark.parametrize(
    ("max_pages", "max_credits", "price", "ceiling"),
    [(10, None, 1, 10), (10, 7, 1, 7), (10, 100, 1, 10), (10, None, 0, 0), (3, None, 5, 15)],
)
def test_the_ceiling_is_every_page_or_the_customers_limit(
    max_pages, max_credits, price, ceiling
) -> None:
    submission = builders.a_submission(
        builders.ids.new_id(), max_pages=max_pages, max_credits=max_credits
    )

    assert pricing.ceiling(submission.request, {"page": price}) == ceiling
