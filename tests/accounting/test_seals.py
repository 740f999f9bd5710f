"""Seals: each committed entry once, in a chain, behind the transactions that still run."""

import asyncio
import hashlib

import pytest

from accounting import lots, seals
from accounting.lots import Grant
from runtime.database import Database
from tests.support import builders, sealing


async def head_of(database: Database, tenant_id):
    async with database.transaction(tenant_id) as tx:
        return await seals.head(tx, tenant_id)


async def sealed_in(system: Database, tenant_id) -> list[tuple[int, int]]:
    async with system.connection() as connection:
        rows = await connection.fetch(
            "SELECT seal_no, transfer_id FROM seal_entry WHERE tenant_id = $1 ORDER BY 2", tenant_id
        )
    return [tuple(row) for row in rows]


async def test_before_any_seal_the_head_is_the_chains_origin(
    app: Database, system: Database
) -> None:
    first, second = [await builders.a_tenant(system) for _ in range(2)]

    head = await head_of(app, first.tenant_id)

    origin = hashlib.sha256(f"pagetoll seal chain of {first.tenant_id}".encode()).hexdigest()
    assert (head.seal_no, head.head, head.entries, head.sealed_at) == (0, origin, 0, None)
    assert (await head_of(app, second.tenant_id)).head != origin


async def test_sealing_takes_each_entry_once_and_moves_the_head(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    await sealing.seal_all(system)
    first = await head_of(app, tenant.tenant_id)
    await sealing.seal_all(system)
    assert await head_of(app, tenant.tenant_id) == first

    await builders.a_job(app, tenant.tenant_id)
    await sealing.seal_all(system)

    second = await head_of(app, tenant.tenant_id)
    assert (first.seal_no, first.entries) == (1, 1)
    assert (second.seal_no, second.entries) == (2, 2)
    assert second.head != first.head
    assert [seal_no for seal_no, _ in await sealed_in(system, tenant.tenant_id)] == [1, 2]


async def test_an_entry_that_commits_after_a_higher_one_goes_into_a_later_seal(
    system: Database,
) -> None:
    slow, quick = [await builders.a_tenant(system) for _ in range(2)]
    async with system.transaction() as tx:
        await grant(tx, slow.tenant_id, "low")
        await builders.a_grant(system, quick.tenant_id, 5)
        for _ in range(4):
            await seals.seal_due(system)
        held_back = await sealed_in(system, quick.tenant_id)
    await sealing.seal_all(system)

    # nothing younger than a running transaction is sealed, or the chain would have a hole below it
    assert held_back == []
    (low,), (high,) = [await sealed_in(system, one.tenant_id) for one in (slow, quick)]
    assert low[1] < high[1]


async def grant(tx, tenant_id, op_key: str) -> None:
    await tx.execute(
        "SELECT grant_v1($1, gen_random_uuid(), 5, 'grant', $2, NULL, 50::smallint, '{}')",
        tenant_id,
        op_key,
    )


async def test_sealing_at_once_seals_once(app: Database, system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=1_000)
    for _ in range(5):
        await builders.a_job(app, tenant.tenant_id)

    async def seal_tenant() -> int:
        async with system.connection() as connection:
            return await connection.fetchval("SELECT seal_v1($1, 0, 2)", tenant.tenant_id)

    await asyncio.gather(*(seal_tenant() for _ in range(50)))
    await sealing.seal_all(system)

    head = await head_of(app, tenant.tenant_id)
    assert head.entries == 6
    assert len(await sealed_in(system, tenant.tenant_id)) == 6


async def test_the_search_begins_behind_what_is_sealed(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)
    await sealing.seal_all(system)
    ((_, last),) = await sealed_in(system, tenant.tenant_id)

    async def sealed_through() -> int:
        async with system.connection() as connection:
            return await connection.fetchval("SELECT sealed_through FROM seal_position")

    turns = 0
    while await sealed_through() < last:
        turns += 1
        assert turns < sealing.TURNS_MAX
        await seals.seal_due(system)
    await builders.a_grant(system, tenant.tenant_id, 7)
    await sealing.seal_all(system)
    assert len(await sealed_in(system, tenant.tenant_id)) == 2


async def test_what_is_not_sealed_is_counted(system: Database) -> None:
    await sealing.seal_all(system)
    tenant = await builders.a_tenant(system)
    for _ in range(3):
        await builders.a_grant(system, tenant.tenant_id, 1)

    async with system.connection() as connection:
        backlog = await seals.backlog(connection)

    assert backlog.entries == 3
    assert backlog.oldest_seconds >= 0


@pytest.mark.parametrize("statement", ["UPDATE seal SET entries = 9", "DELETE FROM seal_entry"])
async def test_the_systems_role_cannot_change_a_seal(system: Database, statement: str) -> None:
    with pytest.raises(Exception, match="permission denied"):
        async with system.transaction() as tx:
            await tx.execute(statement)


async def test_a_tenant_sees_its_own_seals_alone_and_makes_none(
    app: Database, system: Database
) -> None:
    mine, theirs = [await builders.a_tenant(system, credits=5) for _ in range(2)]
    await sealing.seal_all(system)

    async with app.transaction(mine.tenant_id) as tx:
        seen = await tx.fetch("SELECT tenant_id FROM seal UNION SELECT tenant_id FROM seal_entry")
    assert [row["tenant_id"] for row in seen] == [mine.tenant_id]
    assert (await head_of(app, mine.tenant_id)).head != (await head_of(app, theirs.tenant_id)).head
    with pytest.raises(Exception, match="permission denied"):
        async with app.transaction(mine.tenant_id) as tx:
            await tx.execute("INSERT INTO seal_entry VALUES ($1, 1, 1)", mine.tenant_id)


async def test_an_entry_of_a_transaction_that_was_running_is_sealed_after_its_commit(
    app: Database, system: Database
) -> None:
    tenant = await builders.a_tenant(system)
    wanted = Grant(amount=5, source="grant", op_key="slow")
    async with system.transaction() as tx:
        await lots.grant(tx, tenant.tenant_id, wanted)
        for _ in range(3):
            await seals.seal_due(system)
    for _ in range(3):
        await seals.seal_due(system)

    async with system.connection() as connection:
        head = await seals.head(connection, tenant.tenant_id)
    assert head.entries == 1
