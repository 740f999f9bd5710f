"""What an operator does over HTTP: tenants, keys, grants, plans, prices."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest_asyncio

from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of


@pytest_asyncio.fixture(loop_scope="session")
async def admin(system: Database, client: Client) -> AsyncIterator[httpx.AsyncClient]:
    tenant = await builders.a_tenant(system, name="Operator")
    yield client(await builders.a_key(system, tenant.tenant_id, scopes=["admin"]))


async def made_tenant(admin: httpx.AsyncClient, **fields: Any) -> str:
    answer = await admin.post(
        "/admin/v1/tenants", json={"name": "New", "plan_id": "local", **fields}
    )
    assert answer.status_code == 201, answer.text
    return str(answer.json()["tenant_id"])


async def test_a_tenant_is_made_and_can_crawl(admin: httpx.AsyncClient, client: Client) -> None:
    tenant_id = await made_tenant(admin)
    path = f"/admin/v1/tenants/{tenant_id}"
    key = (await admin.post(f"{path}/keys", json={"name": "first"})).json()["secret"]
    grant = await admin.post(f"{path}/grants", json={"amount": 10, "op_key": "welcome"})
    assert grant.status_code == 201
    crawl = {"url": "https://example.com/", "max_pages": 4}
    assert (await client(key).post("/v1/crawls", json=crawl)).status_code == 202
    credits = (await admin.get(f"{path}/credits")).json()
    assert (credits["available"], credits["held"]) == (6, 4)
    assert (await admin.get(path)).json()["name"] == "New"


async def test_a_grant_is_given_once_for_each_op_key(admin: httpx.AsyncClient) -> None:
    path = f"/admin/v1/tenants/{await made_tenant(admin)}"
    wanted = {"amount": 10, "op_key": "invoice-1"}
    first, second = [await admin.post(f"{path}/grants", json=wanted) for _ in range(2)]
    assert first.json()["lot_id"] == second.json()["lot_id"]
    assert (first.json()["replayed"], second.json()["replayed"]) == (False, True)
    assert second.headers["Idempotent-Replayed"] == "true"
    other = await admin.post(f"{path}/grants", json={**wanted, "amount": 11})
    problem_of(other, 409, "idempotency_conflict")
    assert (await admin.get(f"{path}/credits")).json()["available"] == 10


async def test_a_bad_grant_names_the_place_and_gives_nothing(admin: httpx.AsyncClient) -> None:
    path = f"/admin/v1/tenants/{await made_tenant(admin)}"
    good = {"amount": 10, "op_key": "a"}
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    for changes, place in (
        ({"amount": 0}, "$.amount"),
        ({"amount": -5}, "$.amount"),
        ({"amount": 1.5}, "$.amount"),
        ({"amount": 10**15 + 1}, "$.amount"),
        ({"amount": 2**63}, "$.amount"),
        ({"op_key": ""}, "$.op_key"),
        ({"source": "gift"}, "$.source"),
        ({"expires_at": past}, "$.expires_at"),
        ({"expires_at": "2030-01-01T00:00:00"}, "$.expires_at"),
        ({"priority": 99_999}, "$.priority"),
    ):
        answer = await admin.post(f"{path}/grants", json={**good, **changes})
        assert problem_of(answer, 422, "invalid_request")["errors"][0]["path"] == place
    no_key = await admin.post(f"{path}/grants", json={"amount": 10})
    assert problem_of(no_key, 422, "invalid_request")["errors"][0]["path"] == "$.op_key"
    assert (await admin.get(f"{path}/credits")).json()["granted"] == 0


async def test_unknown_tenants_are_404_on_every_path(admin: httpx.AsyncClient) -> None:
    for tenant_id in (str(ids.new_id()), "7"):
        path = f"/admin/v1/tenants/{tenant_id}"
        grant = {"amount": 1, "op_key": "a"}
        for method, where, body in (
            ("GET", path, None),
            ("PATCH", path, {"status": "suspended"}),
            ("POST", f"{path}/keys", {"name": "a"}),
            ("DELETE", f"{path}/keys/abcdefghijkl", None),
            ("POST", f"{path}/grants", grant),
            ("GET", f"{path}/credits", None),
        ):
            answer = await admin.request(method, where, json=body)
            problem_of(answer, 404, "not_found")


async def test_suspending_a_tenant_shuts_its_cached_keys_out(
    admin: httpx.AsyncClient, client: Client
) -> None:
    path = f"/admin/v1/tenants/{await made_tenant(admin)}"
    mine = client((await admin.post(f"{path}/keys", json={"name": "a"})).json()["secret"])
    assert (await mine.get("/v1/jobs")).status_code == 200
    assert (await admin.patch(path, json={"status": "suspended"})).json()["status"] == "suspended"
    problem_of(await mine.get("/v1/jobs"), 403, "tenant_suspended")
    await admin.patch(path, json={"status": "active"})
    assert (await mine.get("/v1/jobs")).status_code == 200


async def test_an_operator_revokes_a_tenants_key(admin: httpx.AsyncClient, client: Client) -> None:
    path = f"/admin/v1/tenants/{await made_tenant(admin)}"
    made = (await admin.post(f"{path}/keys", json={"name": "a"})).json()
    assert (await client(made["secret"]).get("/v1/jobs")).status_code == 200
    assert (await admin.delete(f"{path}/keys/{made['key_id']}")).status_code == 200
    problem_of(await client(made["secret"]).get("/v1/jobs"), 401, "unauthenticated")


async def test_a_plan_changes_for_all_its_tenants_at_once(
    admin: httpx.AsyncClient, client: Client
) -> None:
    plans = (await admin.get("/admin/v1/plans")).json()["items"]
    local = next(plan for plan in plans if plan["plan_id"] == "local")
    small = {**local, "plan_id": "small", "max_pages": 3}
    assert (await admin.put("/admin/v1/plans/small", json=small)).status_code == 200
    path = f"/admin/v1/tenants/{await made_tenant(admin, plan_id='small')}"
    mine = client((await admin.post(f"{path}/keys", json={"name": "a"})).json()["secret"])
    await admin.post(f"{path}/grants", json={"amount": 10, "op_key": "a"})
    crawl = {"url": "https://example.com/", "max_pages": 4}
    refused = problem_of(await mine.post("/v1/crawls", json=crawl), 422, "invalid_request")
    assert refused["errors"][0]["path"] == "$.max_pages"
    await admin.put("/admin/v1/plans/small", json={**small, "max_pages": 4})
    assert (await mine.post("/v1/crawls", json=crawl)).status_code == 202
    other = await admin.put("/admin/v1/plans/large", json=small)
    problem_of(other, 422, "invalid_request")
    unknown = await admin.post("/admin/v1/tenants", json={"name": "a", "plan_id": "none"})
    problem_of(unknown, 404, "not_found")


async def test_tenants_page_through(admin: httpx.AsyncClient) -> None:
    made = [await made_tenant(admin) for _ in range(3)]
    found: list[str] = []
    after: dict[str, str] = {}
    while True:
        answer = await admin.get("/admin/v1/tenants", params={"limit": "2", **after})
        found += [tenant["tenant_id"] for tenant in answer.json()["items"]]
        if answer.json()["next"] is None:
            break
        after = {"after": answer.json()["next"]}
    assert found[-3:] == made
    problem_of(await admin.get("/admin/v1/tenants?after=7"), 400, "invalid_cursor")


async def test_prices_are_published_whole_and_used_from_then_on(
    admin: httpx.AsyncClient, client: Client
) -> None:
    path = f"/admin/v1/tenants/{await made_tenant(admin)}"
    mine = client((await admin.post(f"{path}/keys", json={"name": "a"})).json()["secret"])
    await admin.post(f"{path}/grants", json={"amount": 100, "op_key": "a"})
    before = (await admin.get("/admin/v1/price-books")).json()
    line = {"kind": "crawl", "outcome": "page", "credits": 3}
    for lines in ([], [{**line, "kind": "map"}], [line, line], [{**line, "credits": -1}]):
        answer = await admin.post("/admin/v1/price-books", json={"lines": lines})
        problem_of(answer, 422, "invalid_request")
    published = await admin.post("/admin/v1/price-books", json={"lines": [line]})
    assert published.status_code == 201
    assert published.json()["version"] == before["version"] + 1
    crawl = {"url": "https://example.com/", "max_pages": 4}
    answer = await mine.post("/v1/crawls", json=crawl)
    assert answer.headers["X-Credits-Reserved"] == "12"
