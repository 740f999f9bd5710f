"""Keys, scopes, suspension: who is let in, and how soon a revoked key is not."""

import pytest

from accounting import keys, tenants
from accounting.keys import CUSTOMER_SCOPES
from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders
from tests.support.problems import problem_of

GOOD_SHAPE = f"pt_live_{'a' * 12}_{'b' * 43}"


async def test_every_key_that_is_not_good_gets_the_same_answer(
    system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id)
    wrong_secret = key[:-1] + ("x" if key[-1] != "x" else "y")
    values = (f"Bearer {GOOD_SHAPE}", f"Bearer {wrong_secret}", f"Basic {key}", key, "Bearer")
    tries = [{}, {"X-API-Key": "nonsense"}, *({"Authorization": value} for value in values)]
    answers = [await client().get("/v1/credits", headers=headers) for headers in tries]
    bodies = [{**problem_of(one, 401, "unauthenticated"), "request_id": ""} for one in answers]
    assert all(body == bodies[0] for body in bodies)
    assert {one.headers["WWW-Authenticate"] for one in answers} == {"Bearer"}


async def test_both_headers_carry_a_key(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id)
    for headers in ({"X-API-Key": key}, {"Authorization": f"bearer {key}"}):
        answer = await client().get("/v1/credits", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


CALLS = {
    "POST /v1/crawls": "jobs:write",
    "GET /v1/jobs": "jobs:read",
    f"GET /v1/jobs/{ids.new_id()}": "jobs:read",
    f"GET /v1/jobs/{ids.new_id()}/results": "jobs:read",
    f"DELETE /v1/jobs/{ids.new_id()}": "jobs:write",
    f"POST /v1/jobs/{ids.new_id()}/pause": "jobs:write",
    f"POST /v1/jobs/{ids.new_id()}/resume": "jobs:write",
    f"POST /v1/jobs/{ids.new_id()}/extend": "jobs:write",
    f"POST /v1/jobs/{ids.new_id()}/retry": "jobs:write",
    "GET /admin/v1/jobs": "admin",
    "GET /v1/credits": "billing:read",
    "GET /v1/credits/entries": "billing:read",
    f"POST /v1/jobs/{ids.new_id()}/disputes": "jobs:write",
    f"GET /v1/jobs/{ids.new_id()}/disputes": "jobs:read",
    f"GET /v1/jobs/{ids.new_id()}/disputes/{ids.new_id()}": "jobs:read",
    f"POST /admin/v1/tenants/{ids.new_id()}/refunds": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/adjustments": "admin",
    "GET /admin/v1/corrections": "admin",
    f"GET /admin/v1/tenants/{ids.new_id()}/corrections": "admin",
    f"GET /admin/v1/tenants/{ids.new_id()}/corrections/{ids.new_id()}": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/corrections/{ids.new_id()}/approve": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/corrections/{ids.new_id()}/refuse": "admin",
    "GET /admin/v1/disputes": "admin",
    f"GET /admin/v1/tenants/{ids.new_id()}/disputes": "admin",
    f"GET /admin/v1/tenants/{ids.new_id()}/disputes/{ids.new_id()}": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/disputes/{ids.new_id()}/decision": "admin",
    "GET /v1/keys": "keys:write",
    "POST /v1/keys": "keys:write",
    "DELETE /v1/keys/abcdefghijkl": "keys:write",
    "GET /admin/v1/tenants": "admin",
    "POST /admin/v1/tenants": "admin",
    f"GET /admin/v1/tenants/{ids.new_id()}": "admin",
    f"PATCH /admin/v1/tenants/{ids.new_id()}": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/keys": "admin",
    f"DELETE /admin/v1/tenants/{ids.new_id()}/keys/abcdefghijkl": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/grants": "admin",
    f"GET /admin/v1/tenants/{ids.new_id()}/credits": "admin",
    "GET /admin/v1/plans": "admin",
    "PUT /admin/v1/plans/default": "admin",
    "GET /admin/v1/price-books": "admin",
    "POST /admin/v1/price-books": "admin",
    "GET /admin/v1/reconciliation": "admin",
    "POST /admin/v1/reconciliation": "admin",
    "GET /admin/v1/frozen-tenants": "admin",
    f"POST /admin/v1/tenants/{ids.new_id()}/unfreeze": "admin",
    "GET /v1/credits/statement": "billing:read",
    f"GET /v1/jobs/{ids.new_id()}/statement": "billing:read",
    "GET /v1/credits/explain": "billing:read",
    "GET /v1/usage": "billing:read",
    "GET /v1/usage/events": "billing:read",
    "GET /v1/credits/notices": "billing:read",
    "PUT /v1/credits/alert": "keys:write",
    "GET /v1/budgets": "billing:read",
    "PUT /v1/budgets": "keys:write",
    f"DELETE /v1/budgets/{ids.new_id()}": "keys:write",
    "POST /v1/quotes": "jobs:read",
    f"GET /v1/quotes/{ids.new_id()}": "jobs:read",
    f"PUT /admin/v1/tenants/{ids.new_id()}/prices": "admin",
    f"DELETE /admin/v1/tenants/{ids.new_id()}/prices/crawl/page": "admin",
    "GET /v1/credits/head": "billing:read",
    "GET /v1/credits/signing-key": "billing:read",
    "GET /v1/credits/export": "billing:read",
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_key_without_the_scope_is_told_which(
    call: str, system: Database, client: Client
) -> None:
    method, path = call.split()
    tenant = await builders.a_tenant(system)
    others = [scope for scope in (*CUSTOMER_SCOPES, "admin") if scope != CALLS[call]]
    key = await builders.a_key(system, tenant.tenant_id, scopes=others)
    answer = await client(key).request(method, path)
    problem = problem_of(answer, 403, "forbidden")
    assert problem["scope"] == CALLS[call]
    assert "RateLimit" in answer.headers
    problem_of(await client().request(method, path), 401, "unauthenticated")


async def test_every_call_of_the_document_is_in_the_table_of_scopes(client: Client) -> None:
    document = (await client().get("/schema/openapi.json")).json()
    written = {
        f"{method.upper()} {path.partition('{')[0]}"
        for path, item in document["paths"].items()
        for method in item
        if path.startswith(("/v1/", "/admin/"))
    }
    known = {f"{call.split()[0]} {path}" for call in CALLS for path in [call.split()[1]]}
    for call in written - {"GET /v1/pricing"}:  # any key may read what costs what
        assert any(one.startswith(call) for one in known), call


async def test_a_suspended_tenant_is_refused_everything(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    key = await builders.a_key(system, tenant.tenant_id)
    async with system.transaction() as tx:
        await tenants.change(tx, tenant.tenant_id, status="suspended")
    before = await builders.footprint(system, tenant.tenant_id)
    crawl = {"url": "https://example.com/", "max_pages": 1}
    problem_of(await client(key).post("/v1/crawls", json=crawl), 403, "tenant_suspended")
    problem_of(await client(key).get("/v1/credits"), 403, "tenant_suspended")
    assert await builders.footprint(system, tenant.tenant_id) == before


async def test_a_tenant_suspended_while_its_key_is_cached_still_reserves_nothing(
    system: Database, client: Client
) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    assert (await mine.get("/v1/jobs")).status_code == 200
    async with system.transaction() as tx:
        await tenants.change(tx, tenant.tenant_id, status="suspended")
    crawl = {"url": "https://example.com/", "max_pages": 1}
    problem_of(await mine.post("/v1/crawls", json=crawl), 403, "tenant_suspended")


async def test_a_revoked_key_is_refused_at_once_in_every_gateway(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    other = start_gateway(key_cache_seconds=5.0)
    tenant = await builders.a_tenant(system)
    owner = client(await builders.a_key(system, tenant.tenant_id))
    made = (await owner.post("/v1/keys", json={"name": "short-lived"})).json()
    here, there = client(made["secret"]), client(made["secret"], other)
    assert [(await one.get("/v1/credits")).status_code for one in (here, there)] == [200, 200]

    assert (await owner.delete(f"/v1/keys/{made['key_id']}")).status_code == 200

    problem_of(await here.get("/v1/credits"), 401, "unauthenticated")
    while (answer := await there.get("/v1/credits")).status_code == 200:
        pass  # the hint is on its way; the cache's own life bounds this at 5 s
    problem_of(answer, 401, "unauthenticated")


async def test_a_key_revoked_behind_the_gateways_back_lives_a_cached_moment_longer(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    uncached = start_gateway(key_cache_seconds=0.0)
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id)
    mine = client(key, uncached)
    assert (await mine.get("/v1/credits")).status_code == 200
    async with system.transaction() as tx:
        await keys.revoke(tx, tenant.tenant_id, key.split("_")[2])
    problem_of(await mine.get("/v1/credits"), 401, "unauthenticated")
