"""Proves every balance from the entries alone; names the first row that breaks a rule."""

import re
from collections.abc import Iterable
from uuid import UUID

import msgspec

from runtime import sql
from runtime.database import Connection, Row

SQL = sql.beside(__file__)

FULL_SECONDS = 900
"""How long one invariant may take over everything; on a clock the usual limit stands."""

HOLD_COLUMNS = {
    "transfer": "hold_id",
    "hold": "hold_id",
    "hold_allocation": "hold_id",
    "job": "job_id",
    "page": "job_id",
}
"""The tables that a moved hold is proved from, and the column that names the hold."""
OF_ONE_HOLD = frozenset(
    {
        "holds_match_their_entries",
        "holds_match_their_pages",
        "charges_match_their_pages",
        "successes_cost_their_price",
        "counters_match_their_pages",
        "final_jobs_are_settled",
        "settled_jobs_are_final",
        "allocations_match_their_holds",
        "fences_never_go_back",
    }
)
"""Invariants that hold or break hold by hold; all others are proved for a tenant's whole ledger."""
OF_HISTORY = frozenset(
    {
        "seals_are_chained",
        "seals_match_their_entries",
        "entries_are_sealed",
        "closed_periods_equal_their_entries",
        "the_feed_has_no_gaps",
        "the_feed_has_every_entry",
    }
)
"""Invariants about rows that no move touches: only the full proof reads them all again."""

PAGE_SUM = """
SELECT tenant_id, job_id, transfer_id, state, outcome, credits, fence, count(*) AS pages,
       min(page_no) AS first
FROM page GROUP BY tenant_id, job_id, transfer_id, state, outcome, credits, fence
"""
"""What the invariants over pages read, so that the table is gone through once for all of them."""
WORK_MEMORY = "64MB"
"""For the sums of a full proof: a million pages charged by 25 make 40,000 of them."""

TABLES = """
SELECT DISTINCT table_name FROM information_schema.columns
WHERE table_schema = 'public' AND column_name = 'tenant_id' ORDER BY table_name
"""
ALL_OF_TENANTS = "SELECT * FROM public.{table} WHERE tenant_id = ANY ($1::uuid[])"
ALL_OF_HOLDS = """
SELECT whole.* FROM unnest($1::uuid[], $2::uuid[]) AS moved (tenant, hold)
JOIN public.{table} AS whole ON whole.tenant_id = moved.tenant AND whole.{column} = moved.hold
"""
LEADING_COMMENTS = re.compile(r"\A(?:\s*--[^\n]*\n)*\s*")
OPENING_WITH = re.compile(r"\AWITH\s+", re.IGNORECASE)


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A row that breaks an invariant: whose it is, which hold, job or entry, and what it says."""

    tenant_id: UUID
    subject: str | None
    detail: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One invariant: how many rows break it, the first of them, and all whose rows they are."""

    invariant: str
    violations: int
    first: Violation | None
    tenants: list[UUID] = []


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """What a proof looks at: tenants whose ledger moved, and (tenant, hold) of holds that moved."""

    tenants: list[UUID]
    holds: list[tuple[UUID, UUID]]


async def prove(connection: Connection) -> list[Verdict]:
    """Every invariant over everything; inside one snapshot they speak of the same instant."""
    await connection.execute(f"SET LOCAL statement_timeout = '{FULL_SECONDS}s'")
    await connection.execute(f"SET LOCAL work_mem = '{WORK_MEMORY}'")
    rows: dict[str, list[Row]] = {name: [] for name, _ in SQL.items()}
    for query in in_full().values():
        for row in await connection.fetch(query, timeout=FULL_SECONDS):
            rows[row["invariant"]].append(row)
    return [verdict_of(name, found) for name, found in rows.items()]


def in_full() -> dict[str, str]:
    """The statements of a full proof by what they read: each row names its invariant."""
    over_pages = {name: query for name, query in SQL.items() if "page_sum" in query}
    others = {name: query for name, query in SQL.items() if name not in over_pages}
    return {"pages": shadowed(together(over_pages), {"page_sum": PAGE_SUM})} | {
        name: together({name: query}) for name, query in others.items()
    }


def together(queries: dict[str, str]) -> str:
    """Invariants in one statement, so that what they share is read once."""
    return "\nUNION ALL\n".join(
        f"SELECT '{name}' AS invariant, {name}.* FROM ({query}) AS {name}"  # noqa: S608 # our own
        for name, query in queries.items()
    )


async def prove_moved(connection: Connection, moved: Moved) -> list[Verdict]:
    """The invariants over what moved alone: each reads whole tenants, or whole holds."""
    tables = [row["table_name"] for row in await connection.fetch(TABLES)]
    holds = [tenant for tenant, _ in moved.holds], [hold for _, hold in moved.holds]
    verdicts = []
    for name, query in SQL.items():
        if name in OF_HISTORY:
            continue
        if name in OF_ONE_HOLD:
            rows = await connection.fetch(of_holds(query), *holds)
        else:
            rows = await connection.fetch(of_tenants(query, tables), moved.tenants)
        verdicts.append(verdict_of(name, rows))
    return verdicts


def broken(verdicts: list[Verdict]) -> list[Verdict]:
    return [verdict for verdict in verdicts if verdict.violations]


def verdict_of(name: str, rows: list[Row]) -> Verdict:
    first = min(rows, key=lambda row: (str(row["tenant_id"]), row["subject"] or ""), default=None)
    return Verdict(
        invariant=name,
        violations=len(rows),
        first=None if first is None else msgspec.convert(dict(first), Violation),
        tenants=sorted({row["tenant_id"] for row in rows}),
    )


def of_tenants(query: str, tables: Iterable[str]) -> str:
    """The same query over the rows of the tenants in $1."""
    # the names come out of the catalogue, never from a caller
    parts = {table: ALL_OF_TENANTS.format(table=table) for table in tables}
    return shadowed(query, parts | {"page_sum": PAGE_SUM})


def of_holds(query: str) -> str:
    """The same query over the rows of the holds in $2, whose tenants are in $1."""
    parts = {
        table: ALL_OF_HOLDS.format(table=table, column=column)
        for table, column in HOLD_COLUMNS.items()
    }
    return shadowed(query, parts | {"page_sum": PAGE_SUM})


def shadowed(query: str, parts: dict[str, str]) -> str:
    """A query in which these parts stand for tables: a name in WITH hides the table."""
    bare = LEADING_COMMENTS.sub("", query)
    own_parts = OPENING_WITH.match(bare)
    rest = f", {bare[own_parts.end() :]}" if own_parts else f"\n{bare}"
    return f"WITH {', '.join(f'{name} AS ({part})' for name, part in parts.items())}{rest}"
