"""API keys: made once, kept as hashes, scoped, revoked."""

import hmac
import re
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import msgspec

from accounting import tenants
from accounting.tenants import Plan, TenantNotFound, TenantStatus
from jobs.vocabulary import Scope
from runtime import ids, sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

KEY = re.compile(r"pt_live_(?P<key_id>[0-9A-Za-z]{12})_(?P<secret>[0-9A-Za-z]{43})")
KEY_ID_LENGTH = 12
SECRET_LENGTH = 43
"""43 characters of base 62 carry 256 bits, so that a fast hash of them is enough."""

CUSTOMER_SCOPES: tuple[Scope, ...] = ("jobs:read", "jobs:write", "billing:read", "keys:write")


class KeyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A key as lists show it; its secret is shown once, when it is made."""

    key_id: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    revoked_at: datetime | None


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who a request comes from: a tenant, the key it used, what that key may do."""

    tenant_id: UUID
    key_id: str
    scopes: frozenset[Scope]
    status: TenantStatus
    plan: Plan


async def create(
    tx: Connection, tenant_id: UUID, *, name: str, scopes: Sequence[Scope]
) -> tuple[KeyRecord, str]:
    """The key's record and the whole key, which nobody can read again."""
    key_id = ids.random_text(KEY_ID_LENGTH)
    key = f"pt_live_{key_id}_{ids.random_text(SECRET_LENGTH)}"
    row = await tx.fetchrow(
        SQL.insert, tenant_id, key_id, name, ids.digest(key), sorted(set(scopes))
    )
    if row is None:
        raise TenantNotFound
    return msgspec.convert(dict(row), KeyRecord), key


async def list_all(connection: Connection, tenant_id: UUID) -> list[KeyRecord]:
    rows = await connection.fetch(SQL.list, tenant_id)
    return [msgspec.convert(dict(row), KeyRecord) for row in rows]


async def revoke(connection: Connection, tenant_id: UUID, key_id: str) -> KeyRecord:
    """Revoking twice is once; raises Refusal where the tenant has no such key."""
    row = await connection.fetchrow(SQL.revoke, tenant_id, key_id)
    if row is None:
        raise Refusal("not_found", "There is no such key.")
    return msgspec.convert(dict(row), KeyRecord)


async def authenticate(connection: Connection, key: str) -> Principal | None:
    """Whose key this is; None for every key that is not good, whatever is wrong with it."""
    match = KEY.fullmatch(key)
    presented = ids.digest(key)
    rows = await connection.fetch(SQL.find, match["key_id"]) if match else []
    for row in rows:
        if hmac.compare_digest(bytes(row["secret_hash"]), presented):
            return Principal(
                tenant_id=row["tenant_id"],
                key_id=row["key_id"],
                scopes=frozenset(row["scopes"]),
                status=row["status"],
                plan=tenants.stored_plan(row["plan"]),
            )
    return None
