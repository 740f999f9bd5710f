"""GET /v1/credits and its entries: what a tenant has, what moved and why."""

from typing import Annotated

import msgspec
from litestar import Router, get
from litestar.di import Provide
from litestar.params import Parameter
from msgspec import UNSET, UnsetType

from accounting import ledger, statements
from accounting.keys import Principal
from accounting.ledger import Balance, Entry, EntryFilter, EntryKind
from accounting.lots import Lot
from accounting.statements import Totals
from gateway import problems
from gateway.native import parameters
from gateway.native.parameters import Time, Window
from runtime import clock
from runtime.database import Database

BILLING = {"scope": "billing:read"}

Instant = Annotated[
    str | None,
    Parameter(description="RFC 3339, with its zone: the balance just before, without the lots."),
]


class Charged(msgspec.Struct, frozen=True, kw_only=True):
    """Credits charged in the calendar month (UTC), and ever."""

    period: int
    lifetime: int


class Credits(msgspec.Struct, frozen=True, kw_only=True):
    """granted - adjusted_out = available + held + (charged.lifetime - refunded) + expired.

    `lots` is absent with `as_of`: entries tell what moved, not what each lot still held then.
    """

    available: int
    held: int
    charged: Charged
    refunded: int
    expired: int
    granted: int
    adjusted_out: int
    lots: list[Lot] | UnsetType = UNSET


class EntryList(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the ledger, oldest first; `next` is null at the end."""

    items: list[Entry]
    next: str | None


@get("/credits", opt=BILLING)
async def read_credits(principal: Principal, database: Database, as_of: Instant = None) -> Credits:
    """Tells the balance now or as of an instant, and the credit lots that are not used up now."""
    instant = parameters.time("as_of", as_of)
    if instant is not None and instant > clock.now():
        raise problems.invalid("as_of", "Expected a time that has passed")
    async with database.transaction(principal.tenant_id) as tx:
        if instant is None:
            return shown(await ledger.balance(tx, principal.tenant_id))
        return shown(await statements.totals_at(tx, principal.tenant_id, instant))


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


def shown(balance: Balance | Totals) -> Credits:
    return Credits(
        available=balance.available,
        held=balance.held,
        charged=Charged(period=balance.charged_period, lifetime=balance.charged_lifetime),
        refunded=balance.refunded,
        expired=balance.expired,
        granted=balance.granted,
        adjusted_out=balance.adjusted_out,
        lots=balance.lots if isinstance(balance, Balance) else UNSET,
    )


ROUTER = Router("/", route_handlers=[read_credits, list_entries], tags=["Credits"])
