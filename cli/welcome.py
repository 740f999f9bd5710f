"""Makes a first start useful: a ready tenant with credits and keys, once for a data folder."""

import asyncio

import msgspec

from accounting import keys, lots, tenants
from accounting.lots import Grant
from jobs.vocabulary import Scope
from runtime import database
from runtime.database import Connection, Database
from runtime.settings import Settings

TENANT_NAME = "local"
OPERATOR_NAME = "operator"
"""The admin key belongs to no customer, so that no customer's key can see or revoke it."""
PLAN = "local"
CREDITS = 1_000_000
ADMIN_SCOPES: tuple[Scope, ...] = ("admin",)


class Welcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a script needs to use a running system."""

    url: str
    tenant_key: str
    admin_key: str
    replaced_keys: bool = False


def prepare(settings: Settings, previous: Welcome | None) -> Welcome:
    """The keys of an earlier start while they are good, else a new tenant with new keys."""
    return asyncio.run(_prepare(settings, previous))


async def _prepare(settings: Settings, previous: Welcome | None) -> Welcome:
    pool = Database(settings.system_url, role=database.SYSTEM, size=1)
    await pool.open()
    try:
        async with pool.transaction() as tx:
            if previous is not None and await _are_good(tx, previous):
                return msgspec.structs.replace(previous, url=settings.base_url)
            return await _make(tx, settings)
    finally:
        await pool.close()


async def _are_good(tx: Connection, previous: Welcome) -> bool:
    for key in (previous.tenant_key, previous.admin_key):
        if await keys.authenticate(tx, key) is None:
            return False
    return True


async def _make(tx: Connection, settings: Settings) -> Welcome:
    """New keys: for the tenants of an earlier start where there are any, else for new ones."""
    known = await tenants.named(tx, TENANT_NAME)
    customer = known or await tenants.create(tx, name=TENANT_NAME, plan_id=PLAN)
    operator = await tenants.named(tx, OPERATOR_NAME) or await tenants.create(
        tx, name=OPERATOR_NAME, plan_id=PLAN
    )
    _, tenant_key = await keys.create(
        tx, customer.tenant_id, name="first key", scopes=keys.CUSTOMER_SCOPES
    )
    _, admin_key = await keys.create(tx, operator.tenant_id, name="operator", scopes=ADMIN_SCOPES)
    await lots.grant(
        tx, customer.tenant_id, Grant(amount=CREDITS, source="grant", op_key="first-start")
    )
    return Welcome(
        url=settings.base_url,
        tenant_key=tenant_key,
        admin_key=admin_key,
        replaced_keys=known is not None,
    )
