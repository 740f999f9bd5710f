"""Keys: shown once, kept as hashes, told apart from every other text."""

import pytest

from accounting import keys, tenants
from runtime import ids
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders


async def who(system: Database, key: str):
    async with system.connection() as connection:
        return await keys.authenticate(connection, key)


async def test_a_key_tells_tenant_scopes_and_plan(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id, scopes=["jobs:read"])

    principal = await who(system, key)

    assert principal is not None
    assert (principal.tenant_id, principal.scopes) == (tenant.tenant_id, {"jobs:read"})
    assert principal.plan.plan_id == "local"


async def test_the_secret_is_not_stored(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id)
    async with system.connection() as connection:
        row = await connection.fetchrow(
            "SELECT api_key::text AS whole FROM api_key WHERE tenant_id = $1", tenant.tenant_id
        )

    assert key.rpartition("_")[2] not in row["whole"]


@pytest.mark.parametrize(
    "change",
    [
        lambda key: key[:-1] + ("A" if key[-1] != "A" else "B"),
        lambda key: key[:-1],
        lambda key: key + "A",
        lambda key: key.upper(),
        lambda _: "",
        lambda _: "pt_live_" + "0" * 12 + "_" + "0" * 43,
        lambda key: key + "\n",
    ],
)
async def test_any_other_text_is_nobody(system: Database, change) -> None:
    tenant = await builders.a_tenant(system)

    assert await who(system, change(await builders.a_key(system, tenant.tenant_id))) is None


async def test_a_revoked_key_is_nobody_and_revoking_again_is_once(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    key = await builders.a_key(system, tenant.tenant_id)
    key_id = key.split("_")[2]

    async with system.connection() as connection:
        first = await keys.revoke(connection, tenant.tenant_id, key_id)
        second = await keys.revoke(connection, tenant.tenant_id, key_id)

    assert first == second
    assert await who(system, key) is None


async def test_another_tenants_key_cannot_be_revoked(system: Database) -> None:
    first, second = [await builders.a_tenant(system) for _ in range(2)]
    key = await builders.a_key(system, first.tenant_id)

    with pytest.raises(Refusal):
        async with system.connection() as connection:
            await keys.revoke(connection, second.tenant_id, key.split("_")[2])

    assert await who(system, key) is not None


async def test_a_key_for_nobody_is_refused(system: Database) -> None:
    with pytest.raises(tenants.TenantNotFound):
        await builders.a_key(system, ids.new_id())


async def test_a_tenant_needs_a_plan_that_exists(system: Database) -> None:
    with pytest.raises(Refusal, match="no plan"):
        await builders.a_tenant(system, plan="no-such-plan")
    tenant = await builders.a_tenant(system)
    async with system.connection() as connection:
        with pytest.raises(Refusal, match="no plan"):
            await tenants.change(connection, tenant.tenant_id, plan_id="no-such-plan")
