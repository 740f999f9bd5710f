"""The price book: the most a request can cost, what a page costs; frozen on each job."""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from jobs import requests
from jobs.requests import JobRequest
from jobs.vocabulary import Kind, PageStatus
from runtime import clock, sql
from runtime.database import Connection, Database

SQL = sql.beside(__file__)

Outcome = Literal["page"]
"""What a price can be for; a success of another sort gets its own word here."""

FRESH_SECONDS = 5.0


class PriceLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one outcome of one kind of job costs, in whole credits."""

    kind: Kind
    outcome: Outcome
    credits: Annotated[int, Meta(ge=0, le=1_000_000)]


class PriceBook(msgspec.Struct, frozen=True, kw_only=True):
    """All prices of one version; a version never changes once it is published."""

    version: int
    lines: list[PriceLine]

    def prices_of(self, kind: Kind) -> dict[str, int]:
        """The prices that a job of this kind takes with it."""
        return {line.outcome: line.credits for line in self.lines if line.kind == kind}


class Prices:
    """The current price book, looked up again when it is some seconds old."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._book: PriceBook | None = None
        self._read_at = 0.0

    async def current(self) -> PriceBook:
        if self._book is None or clock.monotonic() - self._read_at > FRESH_SECONDS:
            async with self._database.connection() as connection:
                self._book = await current(connection)
            self._read_at = clock.monotonic()
        return self._book

    def forget(self) -> None:
        self._book = None


async def current(connection: Connection) -> PriceBook:
    rows = await connection.fetch(SQL.current)
    assert rows, "the first migration publishes a price book"
    lines = [
        PriceLine(kind=row["kind"], outcome=row["outcome"], credits=row["credits"]) for row in rows
    ]
    return PriceBook(version=rows[0]["price_version"], lines=lines)


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


def ceiling(request: JobRequest, prices: dict[str, int]) -> int:
    """The most a job can cost: every page at the dearest price, or the customer's own limit."""
    worst = request.max_pages * max(prices.values())
    return worst if request.max_credits is None else min(worst, request.max_credits)


def page_credits(status: PageStatus, prices: dict[str, int]) -> int:
    """What a finished page costs: its price where it succeeded, else nothing."""
    return prices["page"] if status == "succeeded" else 0


def has_prices(book: PriceBook, request: JobRequest) -> bool:
    return bool(book.prices_of(requests.kind_of(request)))
