"""Proves every balance from the entries alone; names the first row that breaks a rule."""

from uuid import UUID

import msgspec

from runtime import sql
from runtime.database import Connection

SQL = sql.beside(__file__)


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A row that breaks an invariant: whose it is, which hold, job or entry, and what it says."""

    tenant_id: UUID
    subject: str | None
    detail: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One invariant: how many rows break it, and the first of them."""

    invariant: str
    violations: int
    first: Violation | None


async def prove(connection: Connection) -> list[Verdict]:
    """Every invariant over everything; inside one snapshot they speak of the same instant."""
    return [await _verdict(connection, name, query) for name, query in SQL.items()]


def broken(verdicts: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.violations]


async def _verdict(connection: Connection, name: str, query: str) -> Verdict:
    rows = await connection.fetch(query)
    first = min(rows, key=lambda row: (str(row["tenant_id"]), row["subject"] or ""), default=None)
    return Verdict(
        invariant=name,
        violations=len(rows),
        first=None if first is None else msgspec.convert(dict(first), Violation),
    )
