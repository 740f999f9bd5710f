"""The price book: the most a request can cost, what a page costs; frozen on each job."""

from collections.abc import Sequence
from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import Meta

from jobs import requests
from jobs.requests import JobRequest
from jobs.vocabulary import Kind, PageOutcomeWord, PageStatus
from runtime import clock, sql
from runtime.database import Connection, Database
from runtime.errors import Refusal

SQL = sql.beside(__file__)

Outcome = PageOutcomeWord | Literal["link", "export"]
"""What a price can be for; every other end of a page, and every other call, costs nothing."""

FRESH_SECONDS = 5.0
TENANTS_MAX = 10_000
TRANCHE_PAGES = 100
"""How many pages' credits a rolling reservation binds at a time."""


class PriceLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one outcome of one kind of job costs, in whole credits."""

    kind: Kind
    outcome: Outcome
    credits: Annotated[int, Meta(ge=0, le=1_000_000)]


class PriceBook(msgspec.Struct, frozen=True, kw_only=True):
    """All prices of one version, and for one tenant those it has agreed on for itself."""

    version: int
    lines: list[PriceLine]

    def prices_of(self, request: JobRequest) -> dict[str, int]:
        """The prices that a job of this request takes with it: of the outcomes it can have."""
        possible = outcomes_of(request)
        kind = requests.kind_of(request)
        return {
            line.outcome: line.credits
            for line in self.lines
            if line.kind == kind and line.outcome in possible
        }


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What a job is submitted under: prices that stay with it, and the most it may cost."""

    price_version: int
    prices: dict[str, int]
    ceiling: int


class Prices:
    """Each tenant's current prices, looked up again when they are some seconds old."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: dict[UUID, tuple[float, PriceBook]] = {}

    async def of(self, tenant_id: UUID) -> PriceBook:
        read_at, book = self._known.get(tenant_id, (0.0, None))
        now = clock.monotonic()
        if book is None or now - read_at > FRESH_SECONDS:
            async with self._database.transaction(tenant_id) as tx:
                book = await of_tenant(tx, tenant_id)
            if len(self._known) >= TENANTS_MAX:
                self._known.clear()
            self._known[tenant_id] = (now, book)
        return book

    def forget(self) -> None:
        self._known.clear()


def outcomes_of(request: JobRequest) -> frozenset[str]:
    """Which priced outcomes a request can come to; they decide the most that it can cost."""
    if request.render == "none":
        return frozenset({"page"})
    return frozenset({"page", "browser_page"})


async def current(connection: Connection) -> PriceBook:
    rows = await connection.fetch(SQL.current)
    assert rows, "the first migration publishes a price book"
    lines = [
        PriceLine(kind=row["kind"], outcome=row["outcome"], credits=row["credits"]) for row in rows
    ]
    return PriceBook(version=rows[0]["price_version"], lines=lines)


async def of_tenant(connection: Connection, tenant_id: UUID) -> PriceBook:
    """The current book with the tenant's own prices in it."""
    book = await current(connection)
    own = {
        (row["kind"], row["outcome"]): row["credits"]
        for row in await connection.fetch(SQL.overrides, tenant_id)
    }
    lines = [
        msgspec.structs.replace(line, credits=own.get((line.kind, line.outcome), line.credits))
        for line in book.lines
    ]
    return PriceBook(version=book.version, lines=lines)


async def publish(tx: Connection, lines: Sequence[PriceLine]) -> PriceBook:
    """A new version for jobs submitted from now on; running jobs keep the one they have."""
    await tx.execute(SQL.lock)
    await tx.execute(
        SQL.publish,
        [line.kind for line in lines],
        [line.outcome for line in lines],
        [line.credits for line in lines],
    )
    return await current(tx)


async def set_override(
    tx: Connection, tenant_id: UUID, line: PriceLine, *, reason: str, actor: str
) -> None:
    """A tenant's own price from now on; raises Refusal where there is no such tenant."""
    made = await tx.fetchval(
        SQL.set_override, tenant_id, line.kind, line.outcome, line.credits, reason, actor
    )
    if made is None:
        raise Refusal("not_found", "There is no such tenant.")


async def drop_override(tx: Connection, tenant_id: UUID, kind: Kind, outcome: Outcome) -> None:
    """Back to the book's price; raises Refusal where the tenant has no price of its own."""
    if await tx.fetchval(SQL.drop_override, tenant_id, kind, outcome) is None:
        raise Refusal("not_found", "The tenant has no price of its own for this.")


def terms(request: JobRequest, book: PriceBook) -> Terms:
    """The terms of a submit without a quote."""
    prices = book.prices_of(request)
    return Terms(price_version=book.version, prices=prices, ceiling=ceiling(request, prices))


def ceiling(request: JobRequest, prices: dict[str, int]) -> int:
    """The most a job can cost: every page at the dearest price, or the customer's own limit."""
    worst = request.max_pages * max(prices.values())
    return worst if request.max_credits is None else min(worst, request.max_credits)


def first_tranche(request: JobRequest, prices: dict[str, int]) -> int:
    """What a submit reserves: all of it, or with a rolling reservation enough for a while."""
    most = ceiling(request, prices)
    return min(most, tranche(prices)) if request.reservation == "rolling" else most


def tranche(prices: dict[str, int]) -> int:
    """Credits of one further tranche of a rolling reservation."""
    return TRANCHE_PAGES * max(prices.values())


def page_credits(status: PageStatus, outcome: str | None, prices: dict[str, int]) -> int:
    """What a finished page costs: its outcome's price where it succeeded, else nothing."""
    return prices[outcome or "page"] if status == "succeeded" else 0
