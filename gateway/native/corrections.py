"""/admin/v1: refunds of pages, adjustments, and their approval by another admin key."""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
import structlog
from litestar import Response, Router, get, post
from litestar.openapi import ResponseSpec
from litestar.params import Parameter
from msgspec import Meta

from accounting import corrections
from accounting.corrections import (
    Adjustment,
    Correction,
    CorrectionNotFound,
    CorrectionState,
    Refund,
)
from accounting.keys import Principal
from accounting.tenants import TenantNotFound
from gateway import commands
from gateway.bodies import StrictJson
from gateway.native import parameters
from gateway.native.parameters import Window
from runtime import ids
from runtime.database import Database

log = structlog.get_logger()

ADMIN = {"scope": "admin"}
CREDITS_MAX = 1_000_000_000_000_000
PAGES_MAX = 1_000
DIRECTIONS: dict[str, Literal["adjust_in", "adjust_out"]] = {"in": "adjust_in", "out": "adjust_out"}

Reason = Annotated[
    str, Meta(min_length=1, max_length=1_000, pattern=r"^\s*[^\s\x00][^\x00]*$(?!\n)")
]
OpKey = Annotated[str, Meta(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$(?!\n)")]
PageIndex = Annotated[int, Meta(ge=0, le=parameters.INDEX_MAX)]
Amount = Annotated[int, Meta(ge=1, le=CREDITS_MAX)]
# `state` itself is a word of the framework.
StateFilter = Annotated[CorrectionState | None, Parameter(query="state")]

WAITING = {202: ResponseSpec(Correction, description="Another admin key must approve it first.")}


class NewRefund(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Pages to give back: all that they were charged, or `credits` of each of them."""

    job_id: str
    pages: Annotated[list[PageIndex], Meta(min_length=1, max_length=PAGES_MAX)]
    reason: Reason
    op_key: OpKey
    credits: Amount | None = None


class NewAdjustment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Credits to give (`in`) or to take back (`out`); the same op_key again does nothing more."""

    direction: Literal["in", "out"]
    amount: Amount
    reason: Reason
    op_key: OpKey


class RefusalReason(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a correction is not made."""

    reason: Reason


class CorrectionList(msgspec.Struct, frozen=True, kw_only=True):
    """Refunds and adjustments, oldest first; `next` is null at the end."""

    items: list[Correction]
    next: str | None


@post(
    "/tenants/{tenant_id:str}/refunds",
    dto=StrictJson,
    return_dto=None,
    status_code=201,
    opt=ADMIN,
    responses=WAITING,
)
async def refund_pages(
    tenant_id: str,
    data: NewRefund,
    principal: Principal,
    system: Database,
    adjustment_limit: int,
) -> Response[Correction]:
    """Refunds charged pages, each once; 202 where another admin key must approve it first."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    wanted = Refund(
        job_id=parameters.job_id(data.job_id),
        pages=data.pages,
        page_credits=data.credits,
        reason=data.reason,
        op_key=data.op_key,
    )
    new_id = ids.new_id()
    correction, replayed = await system.repeat(
        lambda connection: corrections.refund(
            connection,
            whose,
            wanted,
            actor=principal.key_id,
            approval_above=adjustment_limit,
            correction_id=new_id,
        ),
        seconds=commands.TRIES_SECONDS,
    )
    return requested(correction, replayed=replayed)


@post(
    "/tenants/{tenant_id:str}/adjustments",
    dto=StrictJson,
    return_dto=None,
    status_code=201,
    opt=ADMIN,
    responses=WAITING,
)
async def adjust_credits(
    tenant_id: str,
    data: NewAdjustment,
    principal: Principal,
    system: Database,
    adjustment_limit: int,
) -> Response[Correction]:
    """Gives credits or takes them back; 202 where another admin key must approve it first."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    wanted = Adjustment(
        kind=DIRECTIONS[data.direction],
        amount=data.amount,
        reason=data.reason,
        op_key=data.op_key,
    )
    new_id = ids.new_id()
    correction, replayed = await system.repeat(
        lambda connection: corrections.adjust(
            connection,
            whose,
            wanted,
            actor=principal.key_id,
            approval_above=adjustment_limit,
            correction_id=new_id,
        ),
        seconds=commands.TRIES_SECONDS,
    )
    return requested(correction, replayed=replayed)


@get("/corrections", opt=ADMIN)
async def list_corrections(
    system: Database, window: Window, wanted_state: StateFilter = None
) -> CorrectionList:
    """Lists the corrections of all tenants; `state=pending` is what waits for an approval."""
    return await _listed(system, window, wanted_state, None)


@get("/tenants/{tenant_id:str}/corrections", opt=ADMIN)
async def list_tenant_corrections(
    tenant_id: str, system: Database, window: Window, wanted_state: StateFilter = None
) -> CorrectionList:
    """Lists a tenant's refunds and adjustments."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    return await _listed(system, window, wanted_state, whose)


@get("/tenants/{tenant_id:str}/corrections/{correction_id:str}", opt=ADMIN)
async def read_correction(tenant_id: str, correction_id: str, system: Database) -> Correction:
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    which = parameters.tenant_id(correction_id, CorrectionNotFound)
    async with system.connection() as connection:
        return await corrections.read(connection, whose, which)


@post(
    "/tenants/{tenant_id:str}/corrections/{correction_id:str}/approve", status_code=200, opt=ADMIN
)
async def approve_correction(
    tenant_id: str, correction_id: str, principal: Principal, system: Database
) -> Response[Correction]:
    """Makes a pending correction; only with another admin key than the one that asked for it."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    which = parameters.tenant_id(correction_id, CorrectionNotFound)
    correction, replayed = await system.repeat(
        lambda connection: corrections.approve(connection, whose, which, actor=principal.key_id),
        seconds=commands.TRIES_SECONDS,
    )
    return decided(correction, replayed=replayed)


@post(
    "/tenants/{tenant_id:str}/corrections/{correction_id:str}/refuse",
    dto=StrictJson,
    return_dto=None,
    status_code=200,
    opt=ADMIN,
)
async def refuse_correction(
    tenant_id: str,
    correction_id: str,
    data: RefusalReason,
    principal: Principal,
    system: Database,
) -> Response[Correction]:
    """Ends a pending correction; nothing moves. Who asked for it may withdraw it so."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    which = parameters.tenant_id(correction_id, CorrectionNotFound)
    correction, replayed = await system.repeat(
        lambda connection: corrections.refuse(
            connection, whose, which, actor=principal.key_id, reason=data.reason
        ),
        seconds=commands.TRIES_SECONDS,
    )
    return decided(correction, replayed=replayed)


def requested(correction: Correction, *, replayed: bool) -> Response[Correction]:
    """201 where the credits have moved, 202 where they wait for an approval."""
    status = 202 if correction.state == "pending" else 201
    return _told("correction_requested", correction, replayed=replayed, status=status)


def decided(correction: Correction, *, replayed: bool) -> Response[Correction]:
    return _told("correction_decided", correction, replayed=replayed, status=200)


def _told(
    event: str, correction: Correction, *, replayed: bool, status: int
) -> Response[Correction]:
    headers = {"Idempotent-Replayed": "true"} if replayed else {}
    log.info(
        event,
        correction_id=str(correction.correction_id),
        of_tenant=str(correction.tenant_id),
        kind=correction.kind,
        state=correction.state,
        credits=correction.amount,
        replayed=replayed,
    )
    return Response(correction, status_code=status, headers=headers)


async def _listed(
    system: Database, window: Window, state: CorrectionState | None, whose: UUID | None
) -> CorrectionList:
    start, limit = parameters.uuid_cursor(window.after), window.limit
    async with system.connection() as connection:
        found = await corrections.list_after(connection, whose, state, after=start, limit=limit + 1)
    following = str(found[limit - 1].correction_id) if len(found) > limit else None
    return CorrectionList(items=found[:limit], next=following)


ROUTER = Router(
    "/",
    route_handlers=[
        refund_pages,
        adjust_credits,
        list_corrections,
        list_tenant_corrections,
        read_correction,
        approve_correction,
        refuse_correction,
    ],
    tags=["Administration"],
)
