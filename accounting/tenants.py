"""Customer accounts: name, plan, suspension; and what a plan permits."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from runtime import database, ids, sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

TenantStatus = Literal["active", "suspended"]
Rate = Annotated[int, Meta(ge=1, le=10_000_000)]


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tenant may do: rates a minute, jobs at a time, and limits of one job and one host."""

    plan_id: Annotated[str, Meta(pattern=r"^[a-z0-9_-]{1,40}$(?!\n)")]
    submits_per_minute: Rate
    status_per_minute: Rate
    reads_per_minute: Rate
    running_jobs: Annotated[int, Meta(ge=1, le=100_000)]
    max_pages: Annotated[int, Meta(ge=1, le=10_000_000)]
    max_timeout_seconds: Annotated[int, Meta(ge=1, le=86_400)]
    host_interval_seconds: Annotated[float, Meta(ge=0, le=3_600)]
    host_concurrency: Annotated[int, Meta(ge=1, le=1_000)]
    retention_hours: Annotated[int, Meta(ge=0, le=720)]
    may_ignore_robots: bool = False
    unpaced_allowed_networks: bool = False
    weight: Annotated[int, Meta(ge=1, le=1_000)] = 1
    """How many slots this tenant gets for each that a tenant of weight 1 gets."""
    pages_per_second: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """Of all its jobs together; 0 is no limit."""


class Tenant(msgspec.Struct, frozen=True, kw_only=True):
    """One customer account."""

    tenant_id: UUID
    name: str
    plan_id: str
    status: TenantStatus
    created_at: datetime


class TenantNotFound(Refusal):
    def __init__(self) -> None:
        super().__init__("not_found", "There is no such tenant.")


async def create(tx: Connection, *, name: str, plan_id: str) -> Tenant:
    """A tenant with an empty account; raises Refusal where there is no such plan."""
    tenant_id = ids.new_id()
    if await tx.fetchval(SQL.insert, tenant_id, name, plan_id) is None:
        raise Refusal("not_found", f"There is no plan {plan_id!r}.")
    await tx.execute(SQL.open_account, tenant_id)
    return await read(tx, tenant_id)


async def read(connection: Connection, tenant_id: UUID) -> Tenant:
    row = await connection.fetchrow(SQL.one, tenant_id)
    if row is None:
        raise TenantNotFound
    return msgspec.convert(dict(row), Tenant)


async def named(connection: Connection, name: str) -> Tenant | None:
    """The oldest tenant of this name."""
    row = await connection.fetchrow(SQL.named, name)
    return None if row is None else msgspec.convert(dict(row), Tenant)


async def list_after(connection: Connection, after: UUID | None, *, limit: int) -> list[Tenant]:
    rows = await connection.fetch(SQL.list, after, limit)
    return [msgspec.convert(dict(row), Tenant) for row in rows]


async def change(
    connection: Connection,
    tenant_id: UUID,
    *,
    plan_id: str | None = None,
    status: TenantStatus | None = None,
) -> Tenant:
    """Moves a tenant to another plan, suspends it or takes it back; jobs that run go on."""
    if plan_id is not None and plan_id not in {plan.plan_id for plan in await plans(connection)}:
        raise Refusal("not_found", f"There is no plan {plan_id!r}.")
    row = await connection.fetchrow(SQL.change, tenant_id, plan_id, status)
    if row is None:
        raise TenantNotFound
    return msgspec.convert(dict(row), Tenant)


def stored_plan(row: Mapping[str, Any]) -> Plan:
    """Of a row that may have columns which only newer code knows."""
    return msgspec.convert({name: row[name] for name in Plan.__struct_fields__}, Plan)


async def plans(connection: Connection) -> list[Plan]:
    return [stored_plan(dict(row)) for row in await connection.fetch(SQL.plans)]


async def plan_of(connection: Connection, tenant_id: UUID) -> Plan:
    row = await connection.fetchrow(SQL.plan_of, tenant_id)
    if row is None:
        raise TenantNotFound
    return stored_plan(dict(row))


async def put_plan(connection: Connection, plan: Plan) -> Plan:
    """Makes a plan or changes it for all its tenants, from now on."""
    await connection.execute(SQL.put_plan, database.as_json(plan))
    return plan
