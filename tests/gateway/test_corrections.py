"""Refunds, adjustments and their approval as operators and customers see them over HTTP."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import pytest_asyncio

from runtime import ids
from runtime.database import Database
from tests.gateway.conftest import Client
from tests.support import builders
from tests.support import corrections as made
from tests.support.problems import problem_of

LIMIT = 10_000


@pytest_asyncio.fixture(loop_scope="session")
async def admins(
    system: Database, client: Client
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Two operators, each with a key of their own."""
    tenant = await builders.a_tenant(system, name="Operators")
    first, second = [
        client(await builders.a_key(system, tenant.tenant_id, scopes=["admin"])) for _ in range(2)
    ]
    yield first, second


@pytest.fixture
def admin(admins: tuple[httpx.AsyncClient, httpx.AsyncClient]) -> httpx.AsyncClient:
    return admins[0]


async def a_customer(system: Database, client: Client):
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await made.a_finished_job(system, tenant.tenant_id)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    return f"/admin/v1/tenants/{tenant.tenant_id}", str(job_id), mine


async def test_a_refund_is_shown_in_the_balance_and_the_entries(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    path, job_id, mine = await a_customer(system, client)
    before = (await mine.get(f"/v1/jobs/{job_id}")).json()

    answer = await admin.post(
        f"{path}/refunds",
        json={"job_id": job_id, "pages": [0, 1], "reason": "empty pages", "op_key": "ticket-1"},
    )

    assert answer.status_code == 201, answer.text
    refund = answer.json()
    assert (refund["state"], refund["amount"], refund["pages"]) == ("done", 2, [0, 1])
    credits = (await mine.get("/v1/credits")).json()
    assert (credits["refunded"], credits["charged"]["lifetime"]) == (2, 2)
    entries = (await mine.get("/v1/credits/entries?kind=refund")).json()["items"]
    assert [entry["entry_id"] for entry in entries] == [refund["entry_id"]]
    assert entries[0]["meta"]["reason"] == "empty pages"
    assert (await mine.get(f"/v1/jobs/{job_id}")).json() == before


async def test_a_refund_is_replayed_and_a_second_one_is_refused(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    path, job_id, _ = await a_customer(system, client)
    wanted = {"job_id": job_id, "pages": [1], "reason": "empty", "op_key": "a"}
    first, second = [await admin.post(f"{path}/refunds", json=wanted) for _ in range(2)]
    assert first.json() == second.json()
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"

    other = await admin.post(f"{path}/refunds", json={**wanted, "op_key": "b"})
    changed = await admin.post(f"{path}/refunds", json={**wanted, "pages": [0]})
    failed = await admin.post(f"{path}/refunds", json={**wanted, "pages": [2], "op_key": "c"})
    unknown = await admin.post(f"{path}/refunds", json={**wanted, "pages": [9], "op_key": "d"})

    assert problem_of(other, 409, "invalid_state")["pages"] == [1]
    problem_of(changed, 409, "idempotency_conflict")
    assert problem_of(failed, 409, "invalid_state")["pages"] == [2]
    assert problem_of(unknown, 422, "invalid_request")["errors"][0]["path"] == "$.pages"
    assert (await admin.get(f"{path}/credits")).json()["refunded"] == 1


async def test_adjustments_go_in_and_out_and_never_below_zero(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    path, _, _ = await a_customer(system, client)

    async def adjust(direction: str, amount: int) -> httpx.Response:
        body = {"direction": direction, "amount": amount, "reason": "r", "op_key": str(amount)}
        return await admin.post(f"{path}/adjustments", json=body)

    assert (await adjust("in", 50)).json()["kind"] == "adjust_in"
    assert (await adjust("out", 30)).json()["kind"] == "adjust_out"
    credits = (await admin.get(f"{path}/credits")).json()
    assert (credits["granted"], credits["adjusted_out"]) == (150, 30)
    refused = problem_of(await adjust("out", 5_000), 402, "insufficient_credits")
    assert (refused["required"], refused["available"]) == (5_000, credits["available"])


async def test_above_the_limit_another_admin_approves(
    system: Database,
    client: Client,
    admins: tuple[httpx.AsyncClient, httpx.AsyncClient],
) -> None:
    first, second = admins
    path, _, _ = await a_customer(system, client)
    body = {"direction": "in", "amount": LIMIT + 1, "reason": "r", "op_key": "a"}

    asked = await first.post(f"{path}/adjustments", json=body)

    assert (asked.status_code, asked.json()["state"]) == (202, "pending")
    place = f"{path}/corrections/{asked.json()['correction_id']}"
    waiting = (await second.get("/admin/v1/corrections?state=pending&limit=1000")).json()["items"]
    assert asked.json() in waiting
    problem_of(await first.post(f"{place}/approve"), 403, "forbidden")
    done = await second.post(f"{place}/approve")
    again = await second.post(f"{place}/approve")
    assert (done.status_code, done.json()["state"]) == (200, "done")
    assert done.json()["approved_by"] != done.json()["requested_by"]
    assert again.headers["Idempotent-Replayed"] == "true"
    problem_of(await second.post(f"{place}/refuse", json={"reason": "r"}), 409, "invalid_state")
    assert (await first.get(place)).json() == done.json()
    assert (await first.get(f"{path}/credits")).json()["granted"] == 100 + LIMIT + 1


async def test_a_pending_correction_can_be_withdrawn(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    path, _, _ = await a_customer(system, client)
    body = {"direction": "in", "amount": LIMIT + 1, "reason": "r", "op_key": "a"}
    asked = (await admin.post(f"{path}/adjustments", json=body)).json()

    place = f"{path}/corrections/{asked['correction_id']}/refuse"
    ended = (await admin.post(place, json={"reason": "a typing error"})).json()

    assert (ended["state"], ended["refusal"]) == ("refused", "a typing error")
    assert (await admin.get(f"{path}/corrections?state=pending")).json()["items"] == []


GOOD_REFUND: dict[str, Any] = {"pages": [0], "reason": "r", "op_key": "a"}
GOOD_ADJUSTMENT: dict[str, Any] = {"direction": "in", "amount": 5, "reason": "r", "op_key": "a"}


@pytest.mark.parametrize(
    ("call", "changes", "place"),
    [
        ("refunds", {"pages": []}, "$.pages"),
        ("refunds", {"pages": [-1]}, "$.pages[...]"),
        ("refunds", {"pages": list(range(1_001))}, "$.pages"),
        ("refunds", {"credits": 0}, "$.credits"),
        ("refunds", {"reason": " \n"}, "$.reason"),
        ("refunds", {"reason": "a\0"}, "$.reason"),
        ("refunds", {"op_key": ""}, "$.op_key"),
        ("refunds", {"page": 1}, "$.page"),
        ("adjustments", {"amount": 0}, "$.amount"),
        ("adjustments", {"amount": -5}, "$.amount"),
        ("adjustments", {"amount": 2**63}, "$.amount"),
        ("adjustments", {"direction": "up"}, "$.direction"),
        ("adjustments", {"reason": ""}, "$.reason"),
        ("adjustments", {"reason": "x" * 1_001}, "$.reason"),
    ],
)
async def test_a_bad_correction_names_the_place_and_moves_nothing(
    system: Database, client: Client, admin: httpx.AsyncClient, call, changes, place
) -> None:
    path, job_id, _ = await a_customer(system, client)
    good = {"job_id": job_id, **GOOD_REFUND} if call == "refunds" else GOOD_ADJUSTMENT

    answer = await admin.post(f"{path}/{call}", json={**good, **changes})

    assert problem_of(answer, 422, "invalid_request")["errors"][0]["path"].startswith(
        place.removesuffix("[...]")
    )
    assert (await admin.get(f"{path}/corrections")).json() == {"items": [], "next": None}


async def test_what_is_unknown_is_404_and_customers_are_no_operators(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    path, job_id, mine = await a_customer(system, client)
    for tenant in (str(ids.new_id()), "7"):
        where = f"/admin/v1/tenants/{tenant}"
        refund = {"job_id": job_id, **GOOD_REFUND}
        problem_of(await admin.post(f"{where}/refunds", json=refund), 404, "not_found")
        adjusted = await admin.post(f"{where}/adjustments", json=GOOD_ADJUSTMENT)
        problem_of(adjusted, 404, "not_found")
        problem_of(await admin.get(f"{path}/corrections/{tenant}"), 404, "not_found")
        problem_of(await admin.post(f"{path}/corrections/{tenant}/approve"), 404, "not_found")
        missing = {**GOOD_REFUND, "job_id": tenant}
        problem_of(await admin.post(f"{path}/refunds", json=missing), 404, "not_found")
    adjusted = await mine.post(f"{path}/adjustments", json=GOOD_ADJUSTMENT)
    problem_of(adjusted, 403, "forbidden")


async def test_corrections_page_through_oldest_first(
    system: Database, client: Client, admin: httpx.AsyncClient
) -> None:
    path, _, _ = await a_customer(system, client)
    given = []
    for number in range(3):
        body = {**GOOD_ADJUSTMENT, "op_key": str(number)}
        given.append((await admin.post(f"{path}/adjustments", json=body)).json())
    first = (await admin.get(f"{path}/corrections?limit=2")).json()
    rest = (await admin.get(f"{path}/corrections?limit=2&after={first['next']}")).json()
    assert (first["items"] + rest["items"], rest["next"]) == (given, None)
    problem_of(await admin.get(f"{path}/corrections?after=7"), 400, "invalid_cursor")
    bad = problem_of(await admin.get(f"{path}/corrections?state=lost"), 422, "invalid_request")
    assert bad["errors"][0]["path"] == "state"
