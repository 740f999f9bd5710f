"""What a tenant used, in groups; and the feed of entries for other billing systems."""

from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
from litestar import Response, Router, get
from litestar.di import Provide
from litestar.params import Parameter

from accounting import feed, statements, usage
from accounting.feed import Event
from accounting.keys import Principal
from accounting.usage import By, UsageReport, Wanted
from gateway import problems, tables
from gateway.native import parameters
from gateway.native.parameters import After, Limit, Time
from gateway.native.statements import Start
from gateway.tables import Column
from runtime import clock
from runtime.database import Database

BILLING = {"scope": "billing:read"}
CLOUD_EVENTS = "application/cloudevents-batch+json"
COLUMNS = (
    Column("seq", "integer"),
    Column("entry_id", "integer"),
    Column("kind"),
    Column("debit"),
    Column("credit"),
    Column("amount", "integer"),
    Column("job_id"),
    Column("lot_id"),
    Column("op_key"),
    Column("recorded_at", "time"),
    Column("meta"),
)

EventForm = Annotated[Literal["json", "csv", "parquet", "cloudevents"], Parameter(query="format")]


class EventList(msgspec.Struct, frozen=True, kw_only=True):
    """Events in the feed's order. `next` is where to go on, now or when more have come."""

    items: list[Event]
    next: int


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the JSON form of CloudEvents 1.0; `source` and `id` name it once and for ever."""

    specversion: Literal["1.0"] = "1.0"
    id: str
    source: str
    type: str
    subject: str
    time: datetime
    datacontenttype: Literal["application/json"] = "application/json"
    data: dict[str, Any]


class EventWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Which events are asked for, and as what."""

    after: int
    limit: int
    form: Literal["json", "csv", "parquet", "cloudevents"]


def wanted_usage(by: By = "day", start: Start = None, until: Time = None) -> Wanted:
    """From the first of this month until now, where nothing else is said."""
    now = clock.now()
    ends_at = parameters.time("until", until) or now
    starts_at = parameters.time("from", start) or min(statements.month_of(now).starts_at, ends_at)
    if ends_at < starts_at:
        raise problems.invalid("until", "Expected a time after `from`")
    return Wanted(by=by, starts_at=starts_at, ends_at=ends_at)


@get(
    "/usage",
    opt=BILLING,
    dependencies={"wanted": Provide(wanted_usage, sync_to_thread=False)},
)
async def read_usage(
    principal: Principal,
    database: Database,
    wanted: Wanted,
    after: After = None,
    limit: Limit = 100,
) -> UsageReport:
    """Tells pages by outcome and credits charged and refunded, by day, kind, key, host or tag."""
    async with database.snapshot(principal.tenant_id) as snapshot:
        return await usage.read(snapshot, principal.tenant_id, wanted, after=after, limit=limit)


def wanted_events(after: After = None, limit: Limit = 100, form: EventForm = "json") -> EventWindow:
    start = parameters.index_cursor(after, start=0, end=parameters.ENTRY_MAX)
    return EventWindow(after=start, limit=limit, form=form)


@get(
    "/usage/events",
    opt=BILLING,
    dependencies={"wanted": Provide(wanted_events, sync_to_thread=False)},
)
async def read_events(
    principal: Principal, database: Database, wanted: EventWindow
) -> Response[EventList]:
    """Gives the ledger's entries in an order that never changes, numbered without gaps.

    An event appears some seconds after its entry. The header `Link` (RFC 8288) tells the next call.
    """
    async with database.transaction(principal.tenant_id) as tx:
        found = await feed.events(tx, principal.tenant_id, after=wanted.after, limit=wanted.limit)
    following = found[-1].seq if found else wanted.after
    link = f"/v1/usage/events?after={following}&limit={wanted.limit}&format={wanted.form}"
    headers = {"Link": f'<{link}>; rel="next"'}
    if wanted.form == "json":
        return Response(EventList(items=found, next=following), headers=headers)
    content, media_type = rendered(principal.tenant_id, found, wanted.form)
    answer: Response[Any] = Response(content, media_type=media_type, headers=headers)
    return answer


def rendered(
    tenant_id: UUID, found: list[Event], form: Literal["csv", "parquet", "cloudevents"]
) -> tuple[bytes, str]:
    """The events in a form for other programs, and its media type."""
    if form == "cloudevents":
        return msgspec.json.encode([cloud_event(tenant_id, one) for one in found]), CLOUD_EVENTS
    rows = [row_of(one) for one in found]
    if form == "csv":
        return tables.csv_of(COLUMNS, rows), tables.CSV
    return tables.parquet_of(COLUMNS, rows), tables.PARQUET


def row_of(event: Event) -> list[object]:
    meta = None if event.meta is None else msgspec.json.encode(event.meta).decode()
    return [*(getattr(event, column.name) for column in COLUMNS[:-1]), meta]


def cloud_event(tenant_id: UUID, event: Event) -> CloudEvent:
    data = msgspec.structs.asdict(event)
    recorded_at = data.pop("recorded_at")
    return CloudEvent(
        id=str(event.seq),
        source=f"urn:pagetoll:ledger:{tenant_id}",
        type=f"pagetoll.credits.{event.kind}",
        subject=str(tenant_id),
        time=recorded_at.astimezone(UTC),
        data=data,
    )


ROUTER = Router("/", route_handlers=[read_usage, read_events], tags=["Usage"])
