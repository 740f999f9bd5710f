"""Head, signing key, export and runs of the proof, over HTTP."""

from collections.abc import AsyncIterator
from io import BytesIO

import httpx
import pytest
import pytest_asyncio

from accounting import verification
from accounting.verification import Expected, Rejected
from runtime import ids
from runtime.database import Database
from runtime.signing import Signer
from tests.gateway.conftest import Client, StartGateway
from tests.support import builders, sealing
from tests.support.problems import problem_of


@pytest_asyncio.fixture(loop_scope="session")
async def admin(system: Database, client: Client) -> AsyncIterator[httpx.AsyncClient]:
    tenant = await builders.a_tenant(system, name="Operator")
    yield client(await builders.a_key(system, tenant.tenant_id, scopes=["admin"]))


def verified(file: bytes, **expected: object) -> verification.Verified:
    return verification.verify(BytesIO(file), Expected(**expected))


async def test_the_head_moves_with_the_seals(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    mine = client(await builders.a_key(system, tenant.tenant_id))
    before = (await mine.get("/v1/credits/head")).json()

    await sealing.seal_all(system)

    after = (await mine.get("/v1/credits/head")).json()
    assert (before["seal_no"], before["sealed_at"]) == (0, None)
    assert (after["seal_no"], after["entries"]) == (1, 1)
    assert after["head"] != before["head"]
    assert after["sealed_at"].endswith("Z")


async def test_a_signed_export_is_proved_offline_by_key_and_kept_head(
    system: Database, client: Client, start_gateway: StartGateway
) -> None:
    signing = start_gateway(secret_key="a secret")
    tenant = await builders.a_tenant(system, credits=10)
    mine = client(await builders.a_key(system, tenant.tenant_id), signing)
    await sealing.seal_all(system)
    head = (await mine.get("/v1/credits/head")).json()
    await builders.a_job(system, tenant.tenant_id)
    key = (await mine.get("/v1/credits/signing-key")).json()

    answer = await mine.get("/v1/credits/export")

    assert answer.headers["Content-Type"].startswith("application/jsonl")
    assert "attachment" in answer.headers["Content-Disposition"]
    proved = verified(
        answer.content, public_key=key["public_key"], heads={head["seal_no"]: head["head"]}
    )
    assert key["public_key"] == Signer("a secret").public_key
    assert proved.tenant_id == tenant.tenant_id
    assert (proved.balance.available, proved.balance.held) == (0, 10)


async def test_without_a_secret_key_the_export_says_so(system: Database, client: Client) -> None:
    tenant = await builders.a_tenant(system, credits=10)
    mine = client(await builders.a_key(system, tenant.tenant_id))

    key = (await mine.get("/v1/credits/signing-key")).json()
    file = (await mine.get("/v1/credits/export")).content

    assert (key["algorithm"], key["key_id"], key["public_key"]) == ("ed25519", None, None)
    assert "no secret key" in key["note"]
    assert verified(file, unsigned=True).balance.available == 10
    with pytest.raises(Rejected, match="not signed"):
        verified(file)


@pytest.mark.parametrize("path", ["head", "signing-key", "export"])
async def test_proofs_need_the_billing_scope(system: Database, client: Client, path: str) -> None:
    tenant = await builders.a_tenant(system)
    mine = client(await builders.a_key(system, tenant.tenant_id, scopes=["jobs:read"]))

    problem_of(await mine.get(f"/v1/credits/{path}"), 403, "forbidden")


async def test_the_ledger_is_proved_over_http_and_the_run_is_kept(
    admin: httpx.AsyncClient,
) -> None:
    made = []
    for body in ({}, {"scope": "recent"}, {"content": True}):
        answer = await admin.post("/admin/v1/reconciliation", json=body)
        assert answer.status_code == 200, answer.text
        made.append(answer.json())

    assert all(proof["ok"] and proof["frozen"] == [] for proof in made)
    assert all(verdict["violations"] == 0 for proof in made for verdict in proof["verdicts"])
    assert made[2]["verdicts"][-1]["invariant"] == "content_is_kept"
    listed = (await admin.get("/admin/v1/reconciliation?limit=2")).json()
    older = (await admin.get(f"/admin/v1/reconciliation?after={listed['next']}")).json()
    found = [*listed["items"], *older["items"]]
    assert [run["run_id"] for run in found[:3]] == [proof["run_id"] for proof in made[::-1]]
    assert [run["scope"] for run in found[:3]] == ["full", "recent", "full"]
    assert found[0]["asked_by"].startswith("key ")
    assert found[0]["verdicts"] == []
    problem_of(await admin.get("/admin/v1/reconciliation?after=x"), 400, "invalid_cursor")
    bad = await admin.post("/admin/v1/reconciliation", json={"scope": "some"})
    problem_of(bad, 422, "invalid_request")


async def test_a_frozen_tenant_is_listed_and_let_go_once(
    system: Database, admin: httpx.AsyncClient
) -> None:
    tenant = await builders.a_tenant(system)
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE tenant SET frozen_at = now(), frozen_by = 'a_test' WHERE tenant_id = $1",
            tenant.tenant_id,
        )
    listed = (await admin.get("/admin/v1/frozen-tenants")).json()
    path = f"/admin/v1/tenants/{tenant.tenant_id}/unfreeze"

    bare = await admin.post(path, json={})
    first, second = [await admin.post(path, json={"reason": "looked"}) for _ in range(2)]

    assert [one["frozen_by"] for one in listed["items"]] == ["a_test"]
    problem_of(bare, 422, "invalid_request")
    assert first.json() == {"tenant_id": str(tenant.tenant_id)}
    problem_of(second, 409, "invalid_state")
    assert (await admin.get("/admin/v1/frozen-tenants")).json()["items"] == []
    unknown = f"/admin/v1/tenants/{ids.new_id()}/unfreeze"
    problem_of(await admin.post(unknown, json={"reason": "a"}), 404, "not_found")
