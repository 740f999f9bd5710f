"""GET /v1/credits and its entries: what a tenant has, what moved and why."""

import msgspec
from litestar import Router, get
from litestar.di import Provide

from accounting import ledger
from accounting.keys import Principal
from accounting.ledger import Balance, Entry, EntryFilter, EntryKind
from accounting.lots import Lot
from gateway.native import parameters
from gateway.native.parameters import Time, Window
from runtime.database import Database

BILLING = {"scope": "billing:read"}


class Charged(msgspec.Struct, frozen=True, kw_only=True):
    """Credits charged in this calendar month (UTC), and ever."""

    period: int
    lifetime: int


class Credits(msgspec.Struct, frozen=True, kw_only=True):
    """granted - adjusted_out = available + held + (charged.lifetime - refunded) + expired."""

    available: int
    held: int
    charged: Charged
    refunded: int
    expired: int
    granted: int
    adjusted_out: int
    lots: list[Lot]


class EntryList(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the ledger, oldest first; `next` is null at the end."""

    items: list[Entry]
    next: str | None


@get("/credits", opt=BILLING)
async def read_credits(principal: Principal, database: Database) -> Credits:
    """Tells the balance at one instant, and the credit lots that are not used up."""
    async with database.transaction(principal.tenant_id) as tx:
        return shown(await ledger.balance(tx, principal.tenant_id))


def wanted_entries(
    job_id: str | None = None,
    kind: EntryKind | None = None,
    since: Time = None,
    until: Time = None,
) -> EntryFilter:
    return EntryFilter(
        job_id=parameters.uuid_filter("job_id", job_id),
        kind=kind,
        since=parameters.time("since", since),
        until=parameters.time("until", until),
    )


@get(
    "/credits/entries",
    opt=BILLING,
    dependencies={"wanted": Provide(wanted_entries, sync_to_thread=False)},
)
async def list_entries(
    principal: Principal, database: Database, wanted: EntryFilter, window: Window
) -> EntryList:
    """Lists the entries of the ledger; `since` is inside the time asked for, `until` is not."""
    limit = window.limit
    start = parameters.index_cursor(window.after, start=0, end=parameters.ENTRY_MAX)
    async with database.transaction(principal.tenant_id) as tx:
        found = await ledger.entries(tx, principal.tenant_id, wanted, after=start, limit=limit + 1)
    following = str(found[limit - 1].entry_id) if len(found) > limit else None
    return EntryList(items=found[:limit], next=following)


def shown(balance: Balance) -> Credits:
    return Credits(
        available=balance.available,
        held=balance.held,
        charged=Charged(period=balance.charged_period, lifetime=balance.charged_lifetime),
        refunded=balance.refunded,
        expired=balance.expired,
        granted=balance.granted,
        adjusted_out=balance.adjusted_out,
        lots=balance.lots,
    )


ROUTER = Router("/", route_handlers=[read_credits, list_entries], tags=["Credits"])
