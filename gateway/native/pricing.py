"""GET /v1/pricing: the rule of what costs what; POST /v1/quotes: the most it can be."""

from typing import Annotated, Literal

import msgspec
from litestar import Router, get, post
from msgspec import Meta

from accounting import quotes
from accounting.keys import Principal
from accounting.pricing import PriceLine, Prices
from accounting.quotes import Quote
from gateway import auth
from gateway.bodies import StrictJson
from gateway.commands import Commands
from gateway.native import parameters
from jobs.requests import CrawlRequest
from runtime.database import Database
from runtime.errors import Refusal

FREE = (
    "a page that failed, was skipped, was cancelled or was never fetched",
    "a page that is a duplicate, an error page or not a page at all",
    "discovering a URL, reading robots.txt and sitemaps",
    "submitting, polling, listing, downloading, cancelling and quoting",
)


class Pricing(msgspec.Struct, frozen=True, kw_only=True):
    """What one success of each kind costs this tenant; whatever is not named here is free."""

    version: int
    unit: Literal["credits"] = "credits"
    charged: Literal["once per page that succeeded"] = "once per page that succeeded"
    lines: list[PriceLine]
    free: tuple[str, ...] = FREE


class QuoteRequest(CrawlRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The body of a submit, with its kind; `resolve` takes a short look at the site."""

    kind: Annotated[Literal["crawl"], Meta(description="What would be submitted.")]
    resolve: bool = False

    def request(self) -> CrawlRequest:
        """What would be submitted."""
        return CrawlRequest(
            **{name: getattr(self, name) for name in CrawlRequest.__struct_fields__}
        )


@get("/pricing", opt={"scope": auth.ANY_SCOPE})
async def read_pricing(principal: Principal, prices: Prices) -> Pricing:
    """Tells what costs what, by the price book that a job submitted now takes with it."""
    book = await prices.of(principal.tenant_id)
    return Pricing(version=book.version, lines=book.lines)


@post("/quotes", dto=StrictJson, return_dto=None, status_code=201, opt={"scope": "jobs:read"})
async def make_quote(data: QuoteRequest, principal: Principal, commands: Commands) -> Quote:
    """Tells the most that a request can cost; submitted with this `quote_id` it will not cost more.

    Reserves nothing. The promise holds for 15 minutes and for exactly this request.
    """
    return await commands.quote(principal, data.request(), resolve=data.resolve)


@get("/quotes/{quote_id:str}", opt={"scope": "jobs:read"})
async def read_quote(quote_id: str, principal: Principal, database: Database) -> Quote:
    """Tells a quote again, with what a look at the site has found since."""
    wanted = parameters.tenant_id(quote_id, no_quote)
    async with database.transaction(principal.tenant_id) as tx:
        return await quotes.read(tx, principal.tenant_id, wanted)


def no_quote() -> Refusal:
    return Refusal("not_found", "There is no such quote.")


ROUTER = Router("/", route_handlers=[read_pricing, make_quote, read_quote], tags=["Prices"])
