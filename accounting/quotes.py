"""Quotes: the most a request can cost, promised for 15 minutes; what the site is like."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from accounting.pricing import Terms
from jobs import idempotency, requests
from jobs.requests import JobRequest
from jobs.vocabulary import Kind
from runtime import database, ids, sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

PROBE_SECONDS = 10.0
"""How long a look at a site is worth beginning after it was asked for."""


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """Between how many and how many."""

    least: int
    most: int


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What a short look at the start URL, robots.txt and sitemaps found."""

    reachable: bool
    pages: Span
    duration_seconds: Span
    notes: list[str] = []


class QuoteLine(msgspec.Struct, frozen=True, kw_only=True):
    """What one outcome costs a page."""

    outcome: str
    credits: int


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """The ceiling, the price lines and their version; good until `expires_at`."""

    quote_id: UUID
    kind: Kind
    ceiling: int
    lines: list[QuoteLine]
    price_version: int
    created_at: datetime
    expires_at: datetime
    probe_state: Literal["none", "wanted", "taken", "done"]
    probe: Probe | None


class ProbeOrder(msgspec.Struct, frozen=True, kw_only=True):
    """A look that a worker has taken on."""

    tenant_id: UUID
    quote_id: UUID
    kind: Kind
    request: Any


async def make(
    tx: Connection, tenant_id: UUID, request: JobRequest, agreed: Terms, *, resolve: bool
) -> Quote:
    """Reserves nothing; freezes these prices for a submit of the same request."""
    row = await tx.fetchrow(
        SQL.insert,
        tenant_id,
        ids.new_id(),
        requests.kind_of(request),
        idempotency.quoted_hash(request),
        database.as_json(request),
        agreed.price_version,
        database.as_json(agreed.prices),
        agreed.ceiling,
        "wanted" if resolve else "none",
    )
    assert row is not None
    return _quote(dict(row))


async def read(connection: Connection, tenant_id: UUID, quote_id: UUID) -> Quote:
    row = await connection.fetchrow(SQL.one, tenant_id, quote_id)
    if row is None:
        raise Refusal("not_found", "There is no such quote.")
    return _quote(dict(row))


async def terms_of(
    connection: Connection, tenant_id: UUID, quote_id: UUID, request: JobRequest
) -> Terms:
    """What was promised; raises Refusal for a quote that is over or was for something else."""
    row = await connection.fetchrow(
        SQL.good_for, tenant_id, quote_id, idempotency.quoted_hash(request)
    )
    if row is None:
        raise requests.invalid("quote_id", "the quote is over, or was for something else")
    return Terms(price_version=row["price_version"], prices=row["prices"], ceiling=row["ceiling"])


async def claim_probe(connection: Connection) -> ProbeOrder | None:
    """The next look that somebody waits for; None when nobody does."""
    row = await connection.fetchrow(SQL.claim_probe, PROBE_SECONDS)
    return None if row is None else msgspec.convert(dict(row), ProbeOrder)


async def answer_probe(connection: Connection, order: ProbeOrder, found: Probe) -> None:
    await connection.execute(
        SQL.answer_probe, order.tenant_id, order.quote_id, database.as_json(found)
    )


def _quote(row: dict[str, Any]) -> Quote:
    prices: dict[str, int] = row.pop("prices")
    lines = [QuoteLine(outcome=outcome, credits=credits) for outcome, credits in prices.items()]
    return msgspec.convert(row | {"lines": lines}, Quote)
