"""GET, POST, DELETE /v1/keys: a tenant's own API keys."""

import re
from typing import Annotated

import msgspec
from litestar import Router, delete, get, post
from msgspec import Meta

from accounting import keys
from accounting.keys import CUSTOMER_SCOPES, KeyRecord, Principal
from gateway import auth
from gateway.auth import KeyHints
from gateway.bodies import StrictJson
from jobs.vocabulary import Scope
from runtime.database import Database
from runtime.errors import Refusal

KEYS = {"scope": "keys:write"}
KEY_ID = re.compile(rf"[0-9A-Za-z]{{{keys.KEY_ID_LENGTH}}}")

Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)")]
Scopes = Annotated[list[Scope], Meta(min_length=1, max_length=10)]


class NewKey(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A key to make; it may do what its maker may do, or less."""

    name: Name
    scopes: Scopes = msgspec.field(default_factory=lambda: list(CUSTOMER_SCOPES))


class MadeKey(KeyRecord, frozen=True, kw_only=True):
    """A key with its secret, which is shown this once."""

    secret: str


class KeyList(msgspec.Struct, frozen=True, kw_only=True):
    """All keys of a tenant, revoked ones too."""

    items: list[KeyRecord]
    next: str | None = None


@get("/keys", opt=KEYS)
async def list_keys(principal: Principal, database: Database) -> KeyList:
    """Lists the tenant's keys; secrets are never shown again."""
    async with database.transaction(principal.tenant_id) as tx:
        return KeyList(items=await keys.list_all(tx, principal.tenant_id))


@post("/keys", dto=StrictJson, return_dto=None, status_code=201, opt=KEYS)
async def make_key(data: NewKey, principal: Principal, database: Database) -> MadeKey:
    """Makes a key. Its secret is in this answer and nowhere else."""
    for scope in data.scopes:
        auth.need_scope(principal, scope)
    async with database.transaction(principal.tenant_id) as tx:
        record, secret = await keys.create(
            tx, principal.tenant_id, name=data.name, scopes=data.scopes
        )
    return made(record, secret)


@delete("/keys/{key_id:str}", status_code=200, opt=KEYS)
async def revoke_key(
    key_id: str, principal: Principal, database: Database, key_hints: KeyHints
) -> KeyRecord:
    """Revokes a key, in every gateway within seconds; revoking twice is once.

    A key revokes only keys whose scopes it has itself.
    """
    check_id(key_id)
    async with database.transaction(principal.tenant_id) as tx:
        record = await keys.revoke(tx, principal.tenant_id, key_id)
        for scope in record.scopes:
            auth.need_scope(principal, scope)
    await key_hints.changed(key_id)
    return record


def made(record: KeyRecord, secret: str) -> MadeKey:
    return MadeKey(**msgspec.structs.asdict(record), secret=secret)


def check_id(key_id: str) -> None:
    """Raises the same Refusal for what is no id as for an id that nobody has."""
    if not KEY_ID.fullmatch(key_id):
        raise Refusal("not_found", "There is no such key.")


ROUTER = Router("/", route_handlers=[list_keys, make_key, revoke_key], tags=["Keys"])
