"""Statements of credits, the bill of a job, and why each credit moved."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from litestar import Response, Router, get
from litestar.di import Provide
from litestar.params import Parameter

from accounting import explanations, job_statements, seals, signed_statements, statements
from accounting.explanations import Explanation
from accounting.job_statements import JobStatement, StatementPart
from accounting.keys import Principal
from accounting.seals import Head
from accounting.statements import Span, Statement
from gateway import documents, problems, tables
from gateway.native import parameters
from gateway.native.parameters import Limit, Time
from gateway.tables import Column
from runtime import clock
from runtime.database import Database
from runtime.signing import Signature, Signer

BILLING = {"scope": "billing:read"}
MONTH = re.compile(r"(?:19[7-9]|[2-8]\d\d|9[0-8]\d|99[0-8])\d-(?:0[1-9]|1[0-2])", re.ASCII)
COLUMNS = (
    Column("line"),
    Column("of"),
    Column("prior_period"),
    Column("job_id"),
    Column("entries", "integer"),
    Column("credits", "integer"),
    Column("effect", "integer"),
)

Period = Annotated[str | None, Parameter(description="A calendar month of UTC: YYYY-MM.")]
Start = Annotated[
    str | None, Parameter(query="from", description="RFC 3339, with its zone; inside the time.")
]
Form = Annotated[Literal["json", "csv", "pdf"], Parameter(query="format")]
Index = Annotated[str | None, Parameter(description="An index: the pages beyond it are given.")]


class StatementAnswer(Statement, frozen=True, kw_only=True):
    """The statement, and the head of the ledger's seals at the time of reading; signed whole.

    `signature` and `public_key` are null where the installation has no secret key.
    """

    ledger_head: Head
    signature: Signature | None = None
    public_key: str | None = None


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an explanation is wanted of: an entry, or a page of a job."""

    entry: str | None
    job_id: str | None
    page: str | None
    after: int
    limit: int


def wanted_span(
    period: Period = None, start: Start = None, until: Time = None, as_of: Time = None
) -> Span:
    """A month, by default the present one, or any time; `as_of` ends it early."""
    now = clock.now()
    span = _span(period, parameters.time("from", start), parameters.time("until", until), now)
    if span.starts_at > now:
        raise problems.invalid("from" if period is None else "period", "Expected a time that began")
    instant = parameters.time("as_of", as_of)
    if instant is None:
        return span
    if not span.starts_at <= instant <= now:
        raise problems.invalid("as_of", "Expected a past time that the statement has")
    return statements.until(span, instant)


def _span(period: str | None, start: datetime | None, end: datetime | None, now: datetime) -> Span:
    if period is not None:
        if start is not None or end is not None:
            raise problems.invalid("period", "Send either `period` or `from` and `until`")
        if not MONTH.fullmatch(period):
            raise problems.invalid("period", "Expected a month: YYYY-MM")
        return statements.month(period)
    if start is None:
        if end is not None:
            raise problems.invalid("from", "Expected with `until`")
        return statements.month_of(now)
    end = now if end is None else end
    if end < start:
        raise problems.invalid("until", "Expected a time after `from`")
    return Span(starts_at=start, ends_at=end)


@get(
    "/credits/statement",
    opt=BILLING,
    dependencies={"span": Provide(wanted_span, sync_to_thread=False)},
)
async def read_statement(
    principal: Principal, database: Database, signer: Signer, span: Span, form: Form = "json"
) -> Response[StatementAnswer]:
    """Gives the opening balance, what moved by kind, and the closing balance, as JSON, CSV or PDF.

    A month that has been closed reads the same for ever, but for the `ledger_head`.
    """
    async with database.snapshot(principal.tenant_id) as snapshot:
        statement = await statements.read(snapshot, principal.tenant_id, span)
        head = await seals.head(snapshot, principal.tenant_id)
    if form == "json":
        values = {name: getattr(statement, name) for name in Statement.__struct_fields__}
        return Response(signed(StatementAnswer(ledger_head=head, **values), signer))
    if form == "pdf":
        content, media_type = documents.statement_pdf(statement), documents.PDF
    else:
        content, media_type = tables.csv_of(COLUMNS, rows_of(statement)), tables.CSV
    answer: Response[Any] = Response(
        content,
        media_type=media_type,
        headers={"Content-Disposition": f'attachment; filename="{file_name(statement)}.{form}"'},
    )
    return answer


def signed(answer: StatementAnswer, signer: Signer) -> StatementAnswer:
    signature = signed_statements.sign(answer, signer)
    return msgspec.structs.replace(answer, signature=signature, public_key=signer.public_key)


def rows_of(statement: Statement) -> list[tuple[object, ...]]:
    """The same lines as in JSON, each with its place in the sum."""
    ends: dict[str, list[tuple[object, ...]]] = {
        name: [
            (name, of, None, None, None, getattr(balances, of), None)
            for of in ("available", "held", "total")
        ]
        for name, balances in (("opening", statement.opening), ("closing", statement.closing))
    }
    return [
        *ends["opening"],
        *(
            (
                "movement",
                line.kind,
                line.prior_period,
                None,
                line.entries,
                line.credits,
                line.effect,
            )
            for line in statement.lines
        ),
        *ends["closing"],
        *(
            ("held", "job", None, one.job_id, None, one.credits, None)
            for one in statement.held_by_job
        ),
        ("held", "other_jobs", None, None, None, statement.held_by_other_jobs, None),
    ]


def file_name(statement: Statement) -> str:
    return f"credits-{statement.period or f'{statement.starts_at:%Y%m%dT%H%M%S}'}"


def wanted_part(
    after: Index = None, entries_after: str | None = None, limit: Limit = 100
) -> StatementPart:
    return StatementPart(
        after=parameters.index_cursor(after, start=-1, end=parameters.INDEX_MAX),
        entries_after=parameters.index_cursor(entries_after, start=0, end=parameters.ENTRY_MAX),
        limit=limit,
    )


@get(
    "/jobs/{job_id:str}/statement",
    opt=BILLING,
    dependencies={"part": Provide(wanted_part, sync_to_thread=False)},
)
async def read_job_statement(
    job_id: str, principal: Principal, database: Database, part: StatementPart
) -> JobStatement:
    """Gives a job's bill: its hold, its entries, every page with its cost, refunds apart."""
    job_uuid = parameters.job_id(job_id)
    async with database.snapshot(principal.tenant_id) as snapshot:
        return await job_statements.read(snapshot, principal.tenant_id, job_uuid, part)


def asked(
    entry: str | None = None,
    job_id: str | None = None,
    page: str | None = None,
    after: Index = None,
    limit: Limit = 100,
) -> Asked:
    if (entry is None) == (job_id is None) or (job_id is None) != (page is None):
        raise problems.invalid("entry", "Send either `entry`, or `job_id` and `page`")
    start = parameters.index_cursor(after, start=-1, end=parameters.INDEX_MAX)
    return Asked(entry=entry, job_id=job_id, page=page, after=start, limit=limit)


@get(
    "/credits/explain",
    opt=BILLING,
    dependencies={"wanted": Provide(asked, sync_to_thread=False)},
)
async def explain(principal: Principal, database: Database, wanted: Asked) -> Explanation:
    """Leads from an entry to its job and the evidence of its pages, or from a page to its entry."""
    tenant_id = principal.tenant_id
    async with database.snapshot(tenant_id) as snapshot:
        if wanted.entry is not None:
            entry_id = parameters.number("entry", wanted.entry, end=parameters.ENTRY_MAX)
            return await explanations.of_entry(
                snapshot, tenant_id, entry_id, after=wanted.after, limit=wanted.limit
            )
        job_id = parameters.job_id(wanted.job_id or "")
        index = parameters.number("page", wanted.page or "", end=parameters.INDEX_MAX)
        return await explanations.of_page(snapshot, tenant_id, job_id, index)


ROUTER = Router(
    "/", route_handlers=[read_statement, read_job_statement, explain], tags=["Statements"]
)
