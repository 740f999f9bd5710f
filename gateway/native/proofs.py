"""What proves a balance: the chain's head, the signing key, the export; runs of the proof."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from litestar import Router, get, post
from litestar.response import Stream
from msgspec import Meta

from accounting import exports, proofs, seals
from accounting.keys import Principal
from accounting.proofs import Frozen, Run, RunScope
from accounting.reconciliation import Verdict
from accounting.seals import Head
from accounting.tenants import TenantNotFound
from gateway.bodies import StrictJson
from gateway.native import parameters
from gateway.native.parameters import Window
from runtime import signing
from runtime.content import ContentStore
from runtime.database import Database
from runtime.signing import Signer

BILLING = {"scope": "billing:read"}
ADMIN = {"scope": "admin"}

JSON_LINES = "application/jsonl"
SIGNING_IS_OFF = "This installation has no secret key: exports are hashed and not signed."


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """The public half of the key that signs, in hexadecimal; null where signing is off."""

    algorithm: Literal["ed25519"]
    key_id: str | None
    public_key: str | None
    note: str | None


class NewRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run to make now: over everything or what moved, and over stored content or not."""

    scope: RunScope = "full"
    content: bool = False


class MadeRun(msgspec.Struct, frozen=True, kw_only=True):
    """Every invariant that the run proved, at one instant, and the tenants that it froze."""

    run_id: UUID
    scope: RunScope
    started_at: datetime
    finished_at: datetime
    ok: bool
    verdicts: list[Verdict]
    frozen: list[UUID]


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """Runs, newest first, with the invariants that were broken; `next` is null at the end."""

    items: list[Run]
    next: str | None


class FrozenList(msgspec.Struct, frozen=True, kw_only=True):
    """Tenants that reserve nothing because a proof failed, the longest frozen first."""

    items: list[Frozen]
    next: str | None = None


class Unfreeze(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a frozen tenant may reserve again; the log keeps it."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)]


class Unfrozen(msgspec.Struct, frozen=True, kw_only=True):
    """The tenant that may reserve again."""

    tenant_id: UUID


@get("/credits/head", opt=BILLING)
async def read_head(principal: Principal, database: Database) -> Head:
    """Tells the last seal over your entries: keep it, and prove later that none was changed."""
    async with database.transaction(principal.tenant_id) as tx:
        return await seals.head(tx, principal.tenant_id)


@get("/credits/signing-key", opt=BILLING, sync_to_thread=False)
def read_signing_key(signer: Signer) -> SigningKey:
    """Tells the public key of the signatures under exports and statements."""
    return SigningKey(
        algorithm=signing.ALGORITHM,
        key_id=signer.key_id,
        public_key=signer.public_key,
        note=None if signer.public_key else SIGNING_IS_OFF,
    )


@get("/credits/export", opt=BILLING, media_type=JSON_LINES)
async def export_entries(principal: Principal, database: Database, signer: Signer) -> Stream:
    """Streams every entry and seal as JSON Lines; `pagetoll verify` proves it offline."""
    export = await exports.begin(database, principal.tenant_id, signer)
    return Stream(
        export.chunks(),
        media_type=JSON_LINES,
        headers={"Content-Disposition": 'attachment; filename="pagetoll-export.jsonl"'},
    )


@get("/reconciliation", opt=ADMIN)
async def list_runs(system: Database, window: Window) -> RunList:
    """Lists the proofs of the ledger that were made, newest first."""
    start = parameters.uuid_cursor(window.after)
    limit = window.limit
    async with system.connection() as connection:
        found = await proofs.runs(connection, start, limit=limit + 1)
    following = str(found[limit - 1].run_id) if len(found) > limit else None
    return RunList(items=found[:limit], next=following)


@post("/reconciliation", dto=StrictJson, return_dto=None, status_code=200, opt=ADMIN)
async def reconcile(
    data: NewRun, principal: Principal, system: Database, content: ContentStore
) -> MadeRun:
    """Proves every balance from the entries alone; names the first row that breaks a rule."""
    proof = await proofs.run(
        system,
        data.scope,
        asked_by=f"key {principal.key_id}",
        store=content if data.content else None,
    )
    return MadeRun(
        run_id=proof.run.run_id,
        scope=proof.run.scope,
        started_at=proof.run.started_at,
        finished_at=proof.run.finished_at,
        ok=not proof.run.verdicts,
        verdicts=proof.verdicts,
        frozen=proof.frozen,
    )


@get("/frozen-tenants", opt=ADMIN)
async def list_frozen(system: Database) -> FrozenList:
    async with system.connection() as connection:
        return FrozenList(items=await proofs.frozen(connection))


@post(
    "/tenants/{tenant_id:str}/unfreeze",
    dto=StrictJson,
    return_dto=None,
    status_code=200,
    opt=ADMIN,
)
async def unfreeze_tenant(
    tenant_id: str, data: Unfreeze, principal: Principal, system: Database
) -> Unfrozen:
    """Lets a frozen tenant reserve again; a proof that still fails freezes it again."""
    whose = parameters.tenant_id(tenant_id, TenantNotFound)
    async with system.transaction() as tx:
        await proofs.unfreeze(tx, whose, actor=principal.key_id, reason=data.reason)
    return Unfrozen(tenant_id=whose)


ROUTER = Router("/", route_handlers=[read_head, read_signing_key, export_entries], tags=["Credits"])
ADMIN_ROUTER = Router(
    "/",
    route_handlers=[list_runs, reconcile, list_frozen, unfreeze_tenant],
    tags=["Administration"],
)
