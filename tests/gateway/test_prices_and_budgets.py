"""Prices, quotes, caps and notices over HTTP."""

from typing import Any

from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of

CRAWL = {"url": "https://example.com/", "max_pages": 10}


async def a_caller(system: Database, client: Client, **fields: Any) -> tuple[Any, Any]:
    tenant = await builders.a_tenant(system, **fields)
    return tenant.tenant_id, client(await builders.a_key(system, tenant.tenant_id))


async def an_admin(system: Database, client: Client) -> Any:
    tenant = await builders.a_tenant(system)
    return client(await builders.a_key(system, tenant.tenant_id, scopes=["admin"]))


async def test_the_price_rule_is_published(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    billing = client(await builders.a_key(system, tenant.tenant_id, scopes=["billing:read"]))

    pricing = (await billing.get("/v1/pricing")).json()

    lines = {(line["kind"], line["outcome"]): line["credits"] for line in pricing["lines"]}
    assert lines["crawl", "page"] == 1
    assert lines["crawl", "browser_page"] == 5
    assert lines["link_check", "link"] == 1
    assert pricing["free"]
    problem_of(await client(None).get("/v1/pricing"), 401, "unauthenticated")


async def test_a_tenants_own_price_is_what_it_sees_and_pays(
    system: Database, client: Client
) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    admin = await an_admin(system, client)
    line = {"kind": "crawl", "outcome": "page", "credits": 4, "reason": "agreed in writing"}

    answer = await admin.put(f"/admin/v1/tenants/{tenant_id}/prices", json=line)

    assert answer.status_code == 200
    submitted = await mine.post("/v1/crawls", json=CRAWL)
    assert submitted.headers["X-Credits-Reserved"] == "40"
    gone = await admin.delete(f"/admin/v1/tenants/{tenant_id}/prices/crawl/page")
    assert gone.status_code == 204
    assert (await mine.post("/v1/crawls", json=CRAWL)).headers["X-Credits-Reserved"] == "10"
    problem_of(
        await admin.delete(f"/admin/v1/tenants/{tenant_id}/prices/crawl/page"), 404, "not_found"
    )
    problem_of(
        await admin.put(f"/admin/v1/tenants/{ids.new_id()}/prices", json=line), 404, "not_found"
    )


async def test_a_quote_moves_nothing_and_binds_a_submit(system: Database, client: Client) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    before = await builders.footprint(system, tenant_id)

    quoted = await mine.post("/v1/quotes", json={**CRAWL, "kind": "crawl"})

    assert quoted.status_code == 201
    quote = quoted.json()
    assert (quote["ceiling"], quote["lines"], quote["price_version"]) == (
        10,
        [{"outcome": "page", "credits": 1}],
        1,
    )
    assert await builders.footprint(system, tenant_id) == before
    job = await mine.post("/v1/crawls", json={**CRAWL, "quote_id": quote["quote_id"]})
    assert job.status_code == 202
    assert (await mine.get(f"/v1/quotes/{quote['quote_id']}")).json() == quote


async def test_a_quote_that_does_not_fit_is_refused_with_its_path(
    system: Database, client: Client
) -> None:
    _, mine = await a_caller(system, client, credits=100)
    quote = (await mine.post("/v1/quotes", json={**CRAWL, "kind": "crawl"})).json()

    for body in (
        {**CRAWL, "max_pages": 11, "quote_id": quote["quote_id"]},
        {**CRAWL, "quote_id": str(ids.new_id())},
    ):
        problem = problem_of(await mine.post("/v1/crawls", json=body), 422, "invalid_request")
        assert problem["errors"][0]["path"] == "$.quote_id"


async def test_a_bad_request_is_quoted_as_badly_as_it_would_be_submitted(
    system: Database, client: Client
) -> None:
    _, mine = await a_caller(system, client)

    blocked = {"url": "http://127.0.0.1/", "max_pages": 1, "kind": "crawl"}
    problem_of(await mine.post("/v1/quotes", json=blocked), 422, "blocked")
    problem_of(await mine.post("/v1/quotes", json=CRAWL), 422, "invalid_request")
    problem_of(await mine.get(f"/v1/quotes/{ids.new_id()}"), 404, "not_found")
    problem_of(await mine.get("/v1/quotes/x"), 404, "not_found")


async def test_another_tenants_quote_is_not_found(system: Database, client: Client) -> None:
    _, mine = await a_caller(system, client)
    _, theirs = await a_caller(system, client)
    quote = (await theirs.post("/v1/quotes", json={**CRAWL, "kind": "crawl"})).json()

    problem_of(await mine.get(f"/v1/quotes/{quote['quote_id']}"), 404, "not_found")


async def test_a_cap_is_set_seen_hit_and_taken_away(system: Database, client: Client) -> None:
    tenant_id, mine = await a_caller(system, client, credits=100)
    cap = {"node": "tag", "subject": "blue", "period": "month", "cap": 15}

    budget = (await mine.put("/v1/budgets", json=cap)).json()
    first = await mine.post("/v1/crawls", json={**CRAWL, "tags": ["blue"]})
    before = await builders.footprint(system, tenant_id)
    second = await mine.post("/v1/crawls", json={**CRAWL, "tags": ["blue"]})

    assert first.status_code == 202
    problem = problem_of(second, 402, "budget_exhausted")
    assert problem["budget"]["cap"] == 15
    assert (problem["budget"]["used"], problem["budget"]["held"]) == (0, 10)
    assert await builders.footprint(system, tenant_id) == before
    (listed,) = (await mine.get("/v1/budgets")).json()["items"]
    assert (listed["budget_id"], listed["held"]) == (budget["budget_id"], 10)
    assert (await mine.delete(f"/v1/budgets/{budget['budget_id']}")).status_code == 204
    problem_of(await mine.delete(f"/v1/budgets/{budget['budget_id']}"), 404, "not_found")
    problem_of(await mine.delete("/v1/budgets/x"), 404, "not_found")


async def test_a_cap_of_another_tenant_cannot_be_touched(system: Database, client: Client) -> None:
    _, mine = await a_caller(system, client)
    _, theirs = await a_caller(system, client)
    cap = {"node": "tenant", "period": "day", "cap": 1}
    budget = (await theirs.put("/v1/budgets", json=cap)).json()

    problem_of(await mine.delete(f"/v1/budgets/{budget['budget_id']}"), 404, "not_found")
    assert (await mine.get("/v1/budgets")).json()["items"] == []


async def test_low_credits_are_noticed(system: Database, client: Client) -> None:
    _, mine = await a_caller(system, client, credits=25)

    assert (await mine.put("/v1/credits/alert", json={"low_credits": 20})).status_code == 200
    await mine.post("/v1/crawls", json=CRAWL)
    await mine.post("/v1/crawls", json=CRAWL)

    (notice,) = (await mine.get("/v1/credits/notices")).json()["items"]
    assert (notice["kind"], notice["detail"]) == (
        "credits.low",
        {"available": 15, "low_at": 20},
    )
    after = await mine.get("/v1/credits/notices", params={"after": notice["notice_id"]})
    assert after.json() == {"items": [], "next": None}


async def test_a_rolling_submit_reserves_a_tranche(system: Database, client: Client) -> None:
    _, mine = await a_caller(system, client, credits=150)

    answer = await mine.post(
        "/v1/crawls", json={**CRAWL, "max_pages": 1_000, "reservation": "rolling"}
    )

    assert answer.status_code == 202
    assert answer.headers["X-Credits-Reserved"] == "100"
