"""Grants: once for each op_key, into the balance, and out of it when a lot expires."""

import asyncio
from datetime import timedelta

import pytest

from accounting import lots
from accounting.lots import Grant
from runtime import clock, ids
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders


async def give(system: Database, tenant_id, **fields):
    async with system.connection() as connection:
        return await lots.grant(connection, tenant_id, Grant(source="purchase", **fields))


async def test_a_grant_is_a_lot_and_in_the_balance(system: Database) -> None:
    tenant = await builders.a_tenant(system)

    _, replayed = await give(system, tenant.tenant_id, amount=70, op_key="payment-1")

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert not replayed
    assert (balance.available, balance.granted) == (70, 70)
    assert [(lot.amount, lot.remaining, lot.source) for lot in balance.lots] == [
        (70, 70, "purchase")
    ]


async def test_a_payment_told_fifty_times_at_once_is_one_grant(system: Database) -> None:
    tenant = await builders.a_tenant(system)

    answers = await asyncio.gather(
        *(give(system, tenant.tenant_id, amount=70, op_key="payment") for _ in range(50))
    )

    assert len({lot_id for lot_id, _ in answers}) == 1
    assert [replayed for _, replayed in answers].count(False) == 1
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 70


async def test_an_op_key_with_another_amount_is_a_conflict(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    await give(system, tenant.tenant_id, amount=70, op_key="payment")

    with pytest.raises(Refusal) as refused:
        await give(system, tenant.tenant_id, amount=71, op_key="payment")

    assert refused.value.code == "idempotency_conflict"
    assert (await builders.balance_of(system, tenant.tenant_id)).available == 70


async def test_two_tenants_may_use_the_same_op_key(system: Database) -> None:
    first, second = [await builders.a_tenant(system) for _ in range(2)]

    await give(system, first.tenant_id, amount=1, op_key="same")
    await give(system, second.tenant_id, amount=2, op_key="same")

    assert (await builders.balance_of(system, second.tenant_id)).available == 2


async def test_a_grant_to_nobody_is_refused(system: Database) -> None:
    with pytest.raises(Refusal) as refused:
        await give(system, ids.new_id(), amount=1, op_key="payment")

    assert refused.value.code == "not_found"


async def test_an_expired_lot_leaves_the_balance_and_no_other_does(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=5)
    soon = clock.now() + timedelta(hours=1)
    await builders.a_grant(system, tenant.tenant_id, 7, expires_at=soon)
    await expire_all_lots_that_can(system, tenant.tenant_id)

    async with system.transaction() as tx:
        expired = await lots.expire_lots(tx, tenant.tenant_id)

    balance = await builders.balance_of(system, tenant.tenant_id)
    assert expired == 7
    assert (balance.available, balance.expired, balance.granted) == (5, 7, 12)


async def test_expiring_twice_at_once_expires_once(system: Database) -> None:
    tenant = await builders.a_tenant(system)
    soon = clock.now() + timedelta(hours=1)
    await builders.a_grant(system, tenant.tenant_id, 7, expires_at=soon)
    await expire_all_lots_that_can(system, tenant.tenant_id)

    async def expire() -> int:
        async with system.transaction() as tx:
            return await lots.expire_lots(tx, tenant.tenant_id)

    assert sorted(await asyncio.gather(*(expire() for _ in range(10)))) == [0] * 9 + [7]


async def expire_all_lots_that_can(system: Database, tenant_id) -> None:
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE lot SET expires_at = now() - interval '1 s' "
            "WHERE tenant_id = $1 AND expires_at IS NOT NULL",
            tenant_id,
        )


async def test_a_payment_of_another_source_is_a_conflict(system: Database) -> None:
    tenant = await builders.a_tenant(system)

    async with system.connection() as connection:
        await lots.grant(
            connection, tenant.tenant_id, Grant(amount=7, source="grant", op_key="one")
        )
        with pytest.raises(Refusal) as refused:
            await lots.grant(
                connection, tenant.tenant_id, Grant(amount=7, source="purchase", op_key="one")
            )

    assert refused.value.code == "idempotency_conflict"
