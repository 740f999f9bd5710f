"""Disputes: customers contest charged pages of a job, operators decide."""

from typing import Annotated, Literal

import msgspec
import structlog
from litestar import Response, Router, get, post
from litestar.openapi import ResponseSpec
from litestar.params import Parameter
from msgspec import Meta

from accounting import disputes
from accounting.disputes import (
    Decision,
    Dispute,
    DisputeFilter,
    DisputeLine,
    DisputeNotFound,
    DisputeState,
    Opening,
    Verdict,
)
from accounting.keys import Principal
from accounting.tenants import TenantNotFound
from gateway import commands
from gateway.bodies import StrictJson
from gateway.native import parameters
from gateway.native.corrections import PageIndex, Reason
from gateway.native.parameters import Window
from jobs import status
from runtime import ids
from runtime.database import Connection, Database

log = structlog.get_logger()

READ = {"scope": "jobs:read"}
WRITE = {"scope": "jobs:write"}
ADMIN = {"scope": "admin"}
PAGES_MAX = 200
"""Pages of one dispute; its evidence is told in one answer."""
DECISIONS: dict[str, Decision] = {"accept": "accepted", "reject": "rejected"}

# `state` itself is a word of the framework.
StateFilter = Annotated[DisputeState | None, Parameter(query="state")]

WAITING = {202: ResponseSpec(Dispute, description="Another admin key must approve the refund.")}


class NewDispute(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Charged pages of the job, by index, and what is wrong with their charge."""

    pages: Annotated[list[PageIndex], Meta(min_length=1, max_length=PAGES_MAX)]
    reason: Reason


class NewDecision(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Accept refunds the pages; the customer can read the reason of either."""

    decision: Literal["accept", "reject"]
    reason: Reason


class DisputeList(msgspec.Struct, frozen=True, kw_only=True):
    """Disputes, oldest first, without their evidence; `next` is null at the end."""

    items: list[DisputeLine]
    next: str | None


@post("/jobs/{job_id:str}/disputes", dto=StrictJson, return_dto=None, status_code=201, opt=WRITE)
async def open_dispute(
    job_id: str, data: NewDispute, principal: Principal, database: Database
) -> Dispute:
    """Contests charged pages. What is stored of them now is kept as the evidence."""
    wanted = Opening(
        dispute_id=ids.new_id(),
        job_id=parameters.job_id(job_id),
        pages=data.pages,
        reason=data.reason,
        actor=principal.key_id,
    )
    await database.repeat(
        lambda connection: disputes.open_over(connection, principal.tenant_id, wanted),
        seconds=commands.TRIES_SECONDS,
    )
    log.info("dispute_opened", dispute_id=str(wanted.dispute_id), pages=len(data.pages))
    async with database.snapshot(principal.tenant_id) as snapshot:
        return await disputes.read(snapshot, principal.tenant_id, wanted.dispute_id)


@get("/jobs/{job_id:str}/disputes", opt=READ)
async def list_job_disputes(
    job_id: str,
    principal: Principal,
    database: Database,
    window: Window,
    wanted_state: StateFilter = None,
) -> DisputeList:
    """Lists the disputes over a job's pages, and how they were decided."""
    job = parameters.job_id(job_id)
    wanted = DisputeFilter(tenant_id=principal.tenant_id, job_id=job, state=wanted_state)
    async with database.snapshot(principal.tenant_id) as snapshot:
        await status.read(snapshot, principal.tenant_id, job)
        return await _listed(snapshot, window, wanted)


@get("/jobs/{job_id:str}/disputes/{dispute_id:str}", opt=READ)
async def read_job_dispute(
    job_id: str, dispute_id: str, principal: Principal, database: Database
) -> Dispute:
    """Tells a dispute with the evidence of its pages."""
    job = parameters.job_id(job_id)
    which = parameters.tenant_id(dispute_id, DisputeNotFound)
    async with database.snapshot(principal.tenant_id) as snapshot:
        return await disputes.read(snapshot, principal.tenant_id, which, job_id=job)


@get("/disputes", opt=ADMIN)
async def list_disputes(
    system: Database, window: Window, wanted_state: StateFilter = None
) -> DisputeList:
    """Lists the disputes of all tenants; `state=open` is what waits for a decision."""
    async with system.snapshot() as snapshot:
        return await _listed(snapshot, window, DisputeFilter(state=wanted_state))


@get("/tenants/{tenant_id:str}/disputes", opt=ADMIN)
async def list_tenant_disputes(
    tenant_id: str, system: Database, window: Window, wanted_state: StateFilter = None
) -> DisputeList:
    """Lists a tenant's disputes."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    async with system.snapshot() as snapshot:
        wanted = DisputeFilter(tenant_id=whose, state=wanted_state)
        return await _listed(snapshot, window, wanted)


@get("/tenants/{tenant_id:str}/disputes/{dispute_id:str}", opt=ADMIN)
async def read_tenant_dispute(tenant_id: str, dispute_id: str, system: Database) -> Dispute:
    """Tells a dispute with the evidence to decide by."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    which = parameters.tenant_id(dispute_id, DisputeNotFound)
    async with system.snapshot() as snapshot:
        return await disputes.read(snapshot, whose, which)


@post(
    "/tenants/{tenant_id:str}/disputes/{dispute_id:str}/decision",
    dto=StrictJson,
    return_dto=None,
    status_code=200,
    opt=ADMIN,
    responses=WAITING,
)
async def decide_dispute(
    tenant_id: str,
    dispute_id: str,
    data: NewDecision,
    principal: Principal,
    system: Database,
    adjustment_limit: int,
) -> Response[Dispute]:
    """Rejects, or accepts and refunds; 202 where another admin key must approve the refund."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    which = parameters.tenant_id(dispute_id, DisputeNotFound)
    wanted = Verdict(
        decision=DECISIONS[data.decision],
        reason=data.reason,
        actor=principal.key_id,
        correction_id=ids.new_id(),
    )
    replayed = await system.repeat(
        lambda connection: disputes.decide(
            connection, whose, which, wanted, approval_above=adjustment_limit
        ),
        seconds=commands.TRIES_SECONDS,
    )
    async with system.snapshot() as snapshot:
        dispute = await disputes.read(snapshot, whose, which)
    log.info("dispute_decided", dispute_id=str(which), of_tenant=str(whose), state=dispute.state)
    headers = {"Idempotent-Replayed": "true"} if replayed else {}
    return Response(dispute, status_code=202 if dispute.state == "open" else 200, headers=headers)


async def _listed(connection: Connection, window: Window, wanted: DisputeFilter) -> DisputeList:
    start, limit = parameters.uuid_cursor(window.after), window.limit
    found = await disputes.list_after(connection, wanted, after=start, limit=limit + 1)
    following = str(found[limit - 1].dispute_id) if len(found) > limit else None
    return DisputeList(items=found[:limit], next=following)


ROUTER = Router(
    "/", route_handlers=[open_dispute, list_job_disputes, read_job_dispute], tags=["Disputes"]
)
ADMIN_ROUTER = Router(
    "/",
    route_handlers=[list_disputes, list_tenant_disputes, read_tenant_dispute, decide_dispute],
    tags=["Administration"],
)
