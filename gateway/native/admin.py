"""/admin/v1: tenants, their keys, grants and credits; for keys with the scope admin."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Response, Router, delete, get, patch, post
from msgspec import Meta

from accounting import keys, ledger, lots, tenants
from accounting.keys import KeyRecord
from accounting.lots import DEFAULT_PRIORITY, Grant, LotSource
from accounting.tenants import Tenant, TenantNotFound, TenantStatus
from gateway import problems
from gateway.auth import KeyHints
from gateway.bodies import StrictJson
from gateway.native import credits as native_credits
from gateway.native import keys as native_keys
from gateway.native import parameters
from gateway.native.credits import Credits
from gateway.native.keys import MadeKey, Name, NewKey
from gateway.native.parameters import Window
from runtime import clock
from runtime.database import Database

ADMIN = {"scope": "admin"}

PlanId = Annotated[str, Meta(pattern=r"^[a-z0-9_-]{1,40}$(?!\n)")]


class NewTenant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tenant to make, without credits and keys."""

    name: Name
    plan_id: PlanId = "default"


class TenantChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to change of a tenant; what is not sent stays."""

    plan_id: PlanId | None = None
    status: TenantStatus | None = None


class TenantList(msgspec.Struct, frozen=True, kw_only=True):
    """Tenants, oldest first; `next` is null at the end."""

    items: list[Tenant]
    next: str | None


class NewGrant(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credits to give; the same op_key again gives nothing more."""

    amount: Annotated[int, Meta(ge=1, le=1_000_000_000_000_000)]
    op_key: Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$(?!\n)")]
    source: LotSource = "grant"
    expires_at: Annotated[datetime, Meta(tz=True)] | None = None
    priority: Annotated[int, Meta(ge=0, le=1_000)] = DEFAULT_PRIORITY


class Granted(msgspec.Struct, frozen=True, kw_only=True):
    """The lot that a grant made, now or when it was first sent."""

    lot_id: str
    replayed: bool


@post("/tenants", dto=StrictJson, return_dto=None, status_code=201, opt=ADMIN)
async def make_tenant(data: NewTenant, system: Database) -> Tenant:
    """Makes a tenant on a plan."""
    async with system.transaction() as tx:
        return await tenants.create(tx, name=data.name, plan_id=data.plan_id)


@get("/tenants", opt=ADMIN)
async def list_tenants(system: Database, window: Window) -> TenantList:
    """Lists tenants, oldest first."""
    start = parameters.uuid_cursor(window.after)
    limit = window.limit
    async with system.connection() as connection:
        found = await tenants.list_after(connection, start, limit=limit + 1)
    following = str(found[limit - 1].tenant_id) if len(found) > limit else None
    return TenantList(items=found[:limit], next=following)


@get("/tenants/{tenant_id:str}", opt=ADMIN)
async def read_tenant(tenant_id: str, system: Database) -> Tenant:
    async with system.connection() as connection:
        return await tenants.read(connection, parameters.tenant_id(tenant_id, TenantNotFound))


@patch("/tenants/{tenant_id:str}", dto=StrictJson, return_dto=None, opt=ADMIN)
async def change_tenant(
    tenant_id: str, data: TenantChange, system: Database, key_hints: KeyHints
) -> Tenant:
    """Moves a tenant to another plan, suspends it or takes it back; running jobs go on."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    async with system.transaction() as tx:
        tenant = await tenants.change(tx, whose, plan_id=data.plan_id, status=data.status)
    await key_hints.changed(str(whose))
    return tenant


@post("/tenants/{tenant_id:str}/keys", dto=StrictJson, return_dto=None, status_code=201, opt=ADMIN)
async def make_tenant_key(tenant_id: str, data: NewKey, system: Database) -> MadeKey:
    """Makes a key for a tenant; its secret is in this answer and nowhere else."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    async with system.transaction() as tx:
        record, secret = await keys.create(tx, whose, name=data.name, scopes=data.scopes)
    return native_keys.made(record, secret)


@delete("/tenants/{tenant_id:str}/keys/{key_id:str}", status_code=200, opt=ADMIN)
async def revoke_tenant_key(
    tenant_id: str, key_id: str, system: Database, key_hints: KeyHints
) -> KeyRecord:
    """Revokes a tenant's key, in every gateway within seconds."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    native_keys.check_id(key_id)
    async with system.transaction() as tx:
        record = await keys.revoke(tx, whose, key_id)
    await key_hints.changed(key_id)
    return record


@post(
    "/tenants/{tenant_id:str}/grants",
    dto=StrictJson,
    return_dto=None,
    status_code=201,
    opt=ADMIN,
)
async def grant_credits(tenant_id: str, data: NewGrant, system: Database) -> Response[Granted]:
    """Gives credits to a tenant, once for each op_key."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    expires_at = data.expires_at
    if expires_at is not None and (
        expires_at.year > parameters.YEAR_MAX or expires_at <= clock.now()
    ):
        raise problems.invalid("$.expires_at", "Expected a time in the future")
    wanted = Grant(**msgspec.structs.asdict(data))
    async with system.connection() as connection:
        lot_id, replayed = await lots.grant(connection, whose, wanted)
    headers: dict[str, Any] = {"Idempotent-Replayed": "true"} if replayed else {}
    return Response(
        Granted(lot_id=str(lot_id), replayed=replayed), status_code=201, headers=headers
    )


@get("/tenants/{tenant_id:str}/credits", opt=ADMIN)
async def read_tenant_credits(tenant_id: str, system: Database) -> Credits:
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    async with system.connection() as connection:
        return native_credits.shown(await ledger.balance(connection, whose))


ROUTER = Router(
    "/",
    route_handlers=[
        make_tenant,
        list_tenants,
        read_tenant,
        change_tenant,
        make_tenant_key,
        revoke_tenant_key,
        grant_credits,
        read_tenant_credits,
    ],
    tags=["Administration"],
)
