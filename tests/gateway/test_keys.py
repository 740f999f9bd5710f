"""Keys that a tenant makes and revokes itself."""

from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support.problems import problem_of


async def test_a_key_is_made_shown_once_and_works(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    answer = await mine.post("/v1/keys", json={"name": "reader", "scopes": ["jobs:read"]})
    made = answer.json()
    assert answer.status_code == 201
    assert made["secret"].startswith(f"pt_live_{made['key_id']}_")

    listed = await mine.get("/v1/keys")
    assert made["secret"] not in listed.text
    assert {key["key_id"] for key in listed.json()["items"]} >= {made["key_id"]}
    reader = client(made["secret"])
    assert (await reader.get("/v1/jobs")).status_code == 200
    problem_of(await reader.get("/v1/credits"), 403, "forbidden")


async def test_a_key_cannot_give_what_it_lacks(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id, scopes=["keys:write", "jobs:read"])
    for scopes in (["admin"], ["jobs:read", "billing:read"]):
        answer = await client(key).post("/v1/keys", json={"name": "more", "scopes": scopes})
        assert problem_of(answer, 403, "forbidden")["scope"] == scopes[-1]
    assert len((await client(key).get("/v1/keys")).json()["items"]) == 1


async def test_a_bad_wish_for_a_key_names_the_place(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    for body, path in (
        ({}, "$.name"),
        ({"name": ""}, "$.name"),
        ({"name": "a\0"}, "$.name"),
        ({"name": "a", "scopes": []}, "$.scopes"),
        ({"name": "a", "scopes": ["root"]}, "$.scopes[0]"),
        ({"name": "a", "scope": ["admin"]}, "$.scope"),
    ):
        problem = problem_of(await mine.post("/v1/keys", json=body), 422, "invalid_request")
        assert problem["errors"][0]["path"] == path


async def test_revoking_twice_is_once_and_a_strangers_key_is_none(
    system: Database, client: Client
) -> None:
    owner, stranger = [await builders.a_tenant(system) for _ in range(2)]
    mine = client(await builders.a_key(system, owner.tenant_id))
    theirs = client(await builders.a_key(system, stranger.tenant_id))
    made = (await mine.post("/v1/keys", json={"name": "short"})).json()
    path = f"/v1/keys/{made['key_id']}"

    problem_of(await theirs.delete(path), 404, "not_found")
    problem_of(await mine.delete("/v1/keys/%00"), 404, "not_found")
    first, second = [(await mine.delete(path)).json() for _ in range(2)]
    assert first == second
    assert first["revoked_at"] is not None
    problem_of(await client(made["secret"]).get("/v1/jobs"), 401, "unauthenticated")


async def test_a_key_revokes_no_key_that_may_do_more(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    admin_key = await builders.a_key(system, tenant.tenant_id, scopes=["admin"])

    answer = await mine.delete(f"/v1/keys/{admin_key.split('_')[2]}")

    problem_of(answer, 403, "forbidden")
    assert (await client(admin_key).get("/admin/v1/plans")).status_code == 200
