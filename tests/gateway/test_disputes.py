"""A customer contests pages over HTTP, an operator decides, both can read how it ended."""

from collections.abc import AsyncIterator

import httpx
import pytest
import pytest_asyncio

from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders
from tests.support import corrections as made
from tests.support.problems import problem_of


@pytest_asyncio.fixture(loop_scope="session")
async def admin_key(system: Database) -> AsyncIterator[str]:
    tenant = await builders.a_tenant(system, name="Operator")
    yield await builders.a_key(system, tenant.tenant_id, scopes=["admin"])


@pytest.fixture
def admin(client: Client, admin_key: str) -> httpx.AsyncClient:
    return client(admin_key)


async def a_customer(system: Database, client: Client):
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await made.a_finished_job(system, tenant.tenant_id, title="Home")
    mine = client(await builders.a_key(system, tenant.tenant_id))
    return str(tenant.tenant_id), f"/v1/jobs/{job_id}/disputes", mine


async def test_a_dispute_is_opened_decided_and_read(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    tenant_id, path, mine = await a_customer(system, client)

    opened = await mine.post(path, json={"pages": [1, 0, 1], "reason": "nothing in them"})

    assert opened.status_code == 201, opened.text
    dispute = opened.json()
    assert (dispute["state"], dispute["decision"]) == ("open", None)
    assert [(page["index"], page["title"]) for page in dispute["pages"]] == [
        (0, "Home"),
        (1, "Home"),
    ]
    waiting = (await admin.get("/admin/v1/disputes?state=open&limit=1000")).json()["items"]
    assert dispute["dispute_id"] in [one["dispute_id"] for one in waiting]
    place = f"/admin/v1/tenants/{tenant_id}/disputes/{dispute['dispute_id']}"
    assert (await admin.get(place)).json() == dispute
    decided = await admin.post(f"{place}/decision", json={"decision": "accept", "reason": "seen"})
    again = await admin.post(f"{place}/decision", json={"decision": "accept", "reason": "seen"})
    other = await admin.post(f"{place}/decision", json={"decision": "reject", "reason": "no"})

    assert (decided.status_code, decided.json()["state"]) == (200, "accepted")
    assert again.headers["Idempotent-Replayed"] == "true"
    assert problem_of(other, 409, "invalid_state")["state"] == "accepted"
    (line,) = (await mine.get(path)).json()["items"]
    assert (line["pages"], line["credits_refunded"]) == ([0, 1], 2)
    assert line["decision"]["reason"] == "seen"
    assert (await mine.get(f"{path}/{dispute['dispute_id']}")).json() == decided.json()
    assert (await mine.get("/v1/credits")).json()["refunded"] == 2


async def test_a_page_is_in_one_open_dispute(system: Database, client: Client) -> None:
    _, path, mine = await a_customer(system, client)
    first = (await mine.post(path, json={"pages": [0], "reason": "r"})).json()

    second = await mine.post(path, json={"pages": [0, 1], "reason": "r"})

    problem = problem_of(second, 409, "invalid_state")
    assert (problem["dispute_id"], problem["pages"]) == (first["dispute_id"], [0])
    not_charged = await mine.post(path, json={"pages": [2], "reason": "r"})
    assert problem_of(not_charged, 409, "invalid_state")["pages"] == [2]


async def test_a_refund_above_the_limit_keeps_the_dispute_open(
    system: Database, client: Client, admin_key: str, start_gateway: StartGateway
) -> None:
    tenant_id, path, mine = await a_customer(system, client)
    strict = start_gateway(adjustment_limit=1)
    admin = client(admin_key, strict)
    dispute = (await mine.post(path, json={"pages": [0, 1], "reason": "r"})).json()
    place = f"/admin/v1/tenants/{tenant_id}"

    decision = {"decision": "accept", "reason": "seen"}
    asked = await admin.post(f"{place}/disputes/{dispute['dispute_id']}/decision", json=decision)

    assert (asked.status_code, asked.json()["state"]) == (202, "open")
    (waiting,) = (await admin.get(f"{place}/corrections?state=pending")).json()["items"]
    assert waiting["dispute_id"] == dispute["dispute_id"]
    own = await admin.post(f"{place}/corrections/{waiting['correction_id']}/approve")
    problem_of(own, 403, "forbidden")


async def test_disputes_of_others_and_unknown_ones_are_404(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    tenant_id, path, mine = await a_customer(system, client)
    _, other_path, theirs = await a_customer(system, client)
    dispute = (await mine.post(path, json={"pages": [0], "reason": "r"})).json()

    for answer in (
        await theirs.get(path),
        await theirs.post(path, json={"pages": [1], "reason": "r"}),
        await theirs.get(f"{path}/{dispute['dispute_id']}"),
        await theirs.get(f"{other_path}/{dispute['dispute_id']}"),
        await mine.get(f"{path}/{ids.new_id()}"),
        await mine.get(f"{path}/7"),
        await mine.get("/v1/jobs/7/disputes"),
        await admin.get(f"/admin/v1/tenants/{tenant_id}/disputes/{ids.new_id()}"),
        await admin.post(
            f"/admin/v1/tenants/{ids.new_id()}/disputes/{dispute['dispute_id']}/decision",
            json={"decision": "accept", "reason": "r"},
        ),
    ):
        problem_of(answer, 404, "not_found")


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"pages": [], "reason": "r"}, "$.pages"),
        ({"pages": list(range(201)), "reason": "r"}, "$.pages"),
        ({"pages": [0]}, "$.reason"),
        ({"pages": [0], "reason": ""}, "$.reason"),
        ({"pages": ["0"], "reason": "r"}, "$.pages"),
        ({"pages": [0], "reason": "r", "credits": 1}, "$.credits"),
    ],
)
async def test_a_bad_dispute_names_the_place(system: Database, client: Client, body, place) -> None:
    _, path, mine = await a_customer(system, client)

    answer = await mine.post(path, json=body)

    assert problem_of(answer, 422, "invalid_request")["errors"][0]["path"].startswith(place)
    assert (await mine.get(path)).json() == {"items": [], "next": None}


async def test_a_key_that_only_reads_opens_no_dispute(system: Database, client: Client) -> None:
    tenant_id, path, _ = await a_customer(system, client)
    reader = client(await builders.a_key(system, tenant_id, scopes=["jobs:read"]))

    answer = await reader.post(path, json={"pages": [0], "reason": "r"})

    assert problem_of(answer, 403, "forbidden")["scope"] == "jobs:write"
    assert (await reader.get(path)).status_code == 200


async def test_disputes_page_through_and_can_be_chosen(system: Database, client: Client) -> None:
    _, path, mine = await a_customer(system, client)
    for index in (0, 1):
        await mine.post(path, json={"pages": [index], "reason": "r"})

    first = (await mine.get(f"{path}?limit=1")).json()
    rest = (await mine.get(f"{path}?limit=1&after={first['next']}")).json()

    assert [one["pages"] for one in (*first["items"], *rest["items"])] == [[0], [1]]
    assert rest["next"] is None
    assert (await mine.get(f"{path}?state=accepted")).json()["items"] == []
    bad = problem_of(await mine.get(f"{path}?state=lost"), 422, "invalid_request")
    assert bad["errors"][0]["path"] == "state"
