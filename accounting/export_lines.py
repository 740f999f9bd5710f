"""The lines of an export and the hashes over them; knows neither database nor HTTP."""

import hashlib
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from runtime.signing import Signature

FORMAT = "pagetoll-export-1"
PURPOSE = "pagetoll export 1"
"""What an export's signature is for: it signs nothing else."""


class Sums(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A balance that the entries must add up to, in credits."""

    available: int
    held: int
    charged: int
    refunded: int
    expired: int
    granted: int
    adjusted_out: int


class HeaderLine(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="header",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """The first line: whose entries these are, where the chain ends, and the balance then."""

    format: str
    tenant_id: UUID
    exported_at: datetime
    public_key: str | None
    seal_no: int
    head: str
    balance: Sums


class EntryLine(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="entry",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """One entry of the ledger; its line's bytes are what its seal has hashed."""

    entry_id: int
    tenant_id: UUID
    kind: str
    debit: str
    credit: str
    amount: int
    hold_id: UUID | None
    lot_id: UUID | None
    op_key: str
    recorded_at: datetime
    meta: dict[str, Any] | None


class SealLine(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="seal",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """A seal over the entry lines between the seal before and this line."""

    seal_no: int
    entries: int
    entries_so_far: int
    first_entry: int
    last_entry: int
    sealed_at: str
    prev_head: str
    head: str


class EndLine(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag="end",
    tag_field="type",
    forbid_unknown_fields=True,
):
    """The last line: how many lines come before it, their SHA-256, and its signature."""

    lines: int
    sha256: str
    signature: Signature | None


Line = HeaderLine | EntryLine | SealLine | EndLine


def origin(tenant_id: UUID) -> str:
    """The hexadecimal head of a chain without seals."""
    return hashlib.sha256(f"pagetoll seal chain of {tenant_id}".encode()).hexdigest()


def seal_head(seal: SealLine, entries: Iterable[bytes]) -> str:
    """The hexadecimal head that a seal of these entry lines, each with its newline, must have."""
    about = (
        f"seal {seal.seal_no} {seal.entries} {seal.entries_so_far}"
        f" {seal.first_entry} {seal.last_entry} {seal.sealed_at}\n"
    )
    hashed = hashlib.sha256(bytes.fromhex(seal.prev_head) + about.encode())
    for line in entries:
        hashed.update(line)
    return hashed.hexdigest()
