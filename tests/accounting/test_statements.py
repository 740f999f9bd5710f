"""A statement proves itself, and a month that is closed reads the same for ever."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import pytest_asyncio

from accounting import ledger, statements
from accounting.statements import Span, Statement
from runtime import database
from runtime.database import Database
from runtime.embedded.postgres import EmbeddedPostgres
from tests.support import builders, corrections, history, work
from tests.support.database import DatabaseUrls

EVER = Span(starts_at=datetime(2000, 1, 1, tzinfo=UTC), ends_at=datetime(2100, 1, 1, tzinfo=UTC))
BACK = timedelta(days=62)
"""Two months, so that a whole closed month may lie between the entries and now."""


@pytest_asyncio.fixture
async def own(own_database_urls: DatabaseUrls) -> AsyncIterator[Database]:
    pool = Database(own_database_urls.system, role=database.SYSTEM, size=6)
    await pool.open()
    yield pool
    await pool.close()


async def read(system: Database, tenant_id: UUID, span: Span = EVER) -> Statement:
    async with system.snapshot() as snapshot:
        return await statements.read(snapshot, tenant_id, span)


async def a_bill(system: Database, *, finish: bool = True) -> tuple[UUID, UUID]:
    """A tenant with 100 credits and a job that charged 2 of the 10 it reserved."""
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id, max_pages=10)
    async with system.connection() as connection:
        run = await builders.claimed(connection, job_id)
        await builders.finished_pages(connection, run, ["succeeded", "failed", "succeeded"])
    if finish:
        await work.finish(system, run)
    return tenant.tenant_id, job_id


async def test_opening_and_movements_make_the_closing(system: Database) -> None:
    tenant_id, _ = await a_bill(system)

    told = await read(system, tenant_id)

    assert told.opening.total == 0
    assert {line.kind: (line.credits, line.effect) for line in told.lines} == {
        "grant": (100, 100),
        "reserve": (10, 0),
        "charge": (2, -2),
        "release": (8, 0),
    }
    assert (told.closing.available, told.closing.held, told.closing.total) == (98, 0, 98)
    assert told.proves
    assert told.closed_at is None


async def test_what_is_held_is_told_by_open_job(system: Database) -> None:
    tenant_id, job_id = await a_bill(system, finish=False)
    other = await builders.a_job(system, tenant_id, max_pages=30)

    told = await read(system, tenant_id)

    assert {(one.job_id, one.credits) for one in told.held_by_job} == {(job_id, 7), (other, 30)}
    assert told.held_by_job[0].job_id == other
    assert told.closing.held == 37
    assert told.proves


async def test_two_halves_of_a_time_meet_in_the_middle(system: Database) -> None:
    tenant_id, _ = await a_bill(system)
    async with system.connection() as connection:
        moments = [
            row["recorded_at"]
            for row in await connection.fetch(
                "SELECT recorded_at FROM transfer WHERE tenant_id = $1", tenant_id
            )
        ]
    whole = await read(system, tenant_id)

    for moment in moments:
        first = await read(system, tenant_id, Span(starts_at=EVER.starts_at, ends_at=moment))
        second = await read(system, tenant_id, Span(starts_at=moment, ends_at=EVER.ends_at))

        assert first.closing == second.opening
        assert second.closing == whole.closing
        assert first.proves
        assert second.proves


async def test_the_balance_as_of_an_instant_is_the_statements(system: Database) -> None:
    tenant_id, _ = await a_bill(system)
    async with system.connection() as connection:
        now = await ledger.balance(connection, tenant_id)
        rows = await connection.fetch(
            "SELECT kind, recorded_at FROM transfer WHERE tenant_id = $1", tenant_id
        )
        then = {
            row["kind"]: await statements.totals_at(connection, tenant_id, row["recorded_at"])
            for row in rows
        }
        last = await statements.totals_at(connection, tenant_id, EVER.ends_at)

    assert (then["grant"].available, then["grant"].granted) == (0, 0)
    assert (then["reserve"].available, then["reserve"].held) == (100, 0)
    assert (then["charge"].available, then["charge"].held) == (90, 10)
    for name in last.__struct_fields__:
        if name != "charged_period":
            assert getattr(last, name) == getattr(now, name)


async def test_an_adjustment_and_late_work_have_lines_of_their_own(system: Database) -> None:
    tenant = await builders.a_tenant(system, credits=50)
    await builders.a_grant(
        system, tenant.tenant_id, 7, meta={"occurred_at": "2026-01-31T10:00:00Z"}
    )
    for odd in ("yesterday", "2026-13-01T10:00:00Z", "9999-01-01T00:00:00Z", ""):
        await builders.a_grant(system, tenant.tenant_id, 1, meta={"occurred_at": odd})
    await corrections.adjust(system, tenant.tenant_id, "adjust_in", 9)
    await corrections.adjust(system, tenant.tenant_id, "adjust_out", 4)

    told = await read(system, tenant.tenant_id, statements.month_of(datetime.now(UTC)))

    assert {(line.kind, line.prior_period): line.credits for line in told.lines} == {
        ("adjust_in", None): 9,
        ("adjust_out", None): 4,
        ("grant", None): 54,
        ("grant", "2026-01"): 7,
    }
    assert told.proves


async def test_a_refund_of_an_earlier_months_page_is_a_prior_period_line(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    tenant_id, job_id = await a_bill(own)
    await history.move_entries(own_database_urls, postgres_server, BACK)
    then = statements.month_of(datetime.now(UTC) - BACK)
    await statements.close_due(own)
    before = await read(own, tenant_id, then)

    await corrections.refund(own, tenant_id, job_id, [0])

    told = await read(own, tenant_id, statements.month_of(datetime.now(UTC)))
    assert [(line.kind, line.prior_period, line.effect) for line in told.lines] == [
        ("refund", then.period, 1)
    ]
    assert told.proves
    assert await read(own, tenant_id, then) == before
    assert await work.violations(own) == []


def test_a_month_ends_where_the_next_begins() -> None:
    assert statements.month("2026-12").ends_at == statements.month("2027-01").starts_at
    assert statements.month("2028-02").ends_at == datetime(2028, 3, 1, tzinfo=UTC)
    midnight = datetime(2026, 11, 30, 23, 30, tzinfo=UTC).astimezone()
    assert statements.month_of(midnight).period == "2026-11"


async def test_nothing_is_closed_before_its_month_has_ended(own: Database) -> None:
    await a_bill(own)

    assert await statements.close_due(own) == 0


async def test_a_closed_month_reads_the_same_for_ever(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    tenant_id, _ = await a_bill(own, finish=False)
    await history.move_entries(own_database_urls, postgres_server, BACK)
    month = statements.month_of(datetime.now(UTC) - BACK)
    before = await read(own, tenant_id, month)

    assert await statements.close_due(own) >= 1
    closed = await read(own, tenant_id, month)
    await builders.a_grant(own, tenant_id, 1_000)
    await work.end_all(own)
    assert await statements.close_due(own) == 0
    after = await read(own, tenant_id, month)

    assert closed.closed_at is not None
    assert closed == after
    assert (before.opening, before.lines, before.closing) == (
        closed.opening,
        closed.lines,
        closed.closing,
    )
    assert before.held_by_job == closed.held_by_job
    assert len(closed.held_by_job) == 1
    assert closed.proves
    current = await read(own, tenant_id, statements.month_of(datetime.now(UTC)))
    assert current.opening == closed.closing
    assert current.proves
    assert await work.violations(own) == []


async def test_months_without_entries_are_closed_too(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    tenant_id, _ = await a_bill(own)
    await history.move_entries(own_database_urls, postgres_server, timedelta(days=124))

    closed = await statements.close_due(own)

    async with own.connection() as connection:
        rows = await connection.fetch(
            "SELECT opening, closing, totals, last_transfer_id FROM period_close"
            " WHERE tenant_id = $1 ORDER BY period",
            tenant_id,
        )
    assert closed == len(rows) >= 4
    assert [(row["opening"], row["closing"]) for row in rows] == [
        (0, 98),
        *[(98, 98)] * (len(rows) - 1),
    ]
    assert {row["last_transfer_id"] for row in rows} == {rows[0]["last_transfer_id"]}
    assert await work.violations(own) == []


async def test_no_month_is_closed_while_an_older_transaction_runs(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    await a_bill(own)
    await history.move_entries(own_database_urls, postgres_server, BACK)

    async with own.transaction() as slow:
        await slow.execute("SELECT pg_current_xact_id()")
        assert await statements.close_due(own) == 0

    assert await statements.close_due(own) >= 1


async def test_of_fifty_closings_at_once_one_writes(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    tenant_id, _ = await a_bill(own)
    await history.move_entries(own_database_urls, postgres_server, BACK)
    async with own.connection() as connection:
        marked = await connection.fetchrow(statements.SQL.mark)
    assert marked is not None

    async def close() -> str:
        async with own.connection() as connection:
            closed: str = await connection.fetchval(
                statements.SQL.close, tenant_id, marked["before"], marked["mark"]
            )
        return closed

    answers = await asyncio.gather(*(close() for _ in range(50)))

    async with own.connection() as connection:
        months = await connection.fetchval("SELECT count(*) FROM period_close")
    assert answers.count("closed") == months
    assert set(answers) <= {"closed", "known", "not_due"}
    assert await work.violations(own) == []


@pytest.mark.tampers
async def test_a_broken_ledger_does_not_keep_others_from_closing(
    own: Database, own_database_urls: DatabaseUrls, postgres_server: EmbeddedPostgres
) -> None:
    broken, _ = await a_bill(own)
    right, _ = await a_bill(own)
    await history.move_entries(own_database_urls, postgres_server, BACK)
    await history.change(
        own_database_urls,
        postgres_server,
        f"UPDATE transfer SET amount = 5000 WHERE kind = 'charge' AND tenant_id = '{broken}'",
    )

    await statements.close_due(own)

    then = statements.month_of(datetime.now(UTC) - BACK)
    assert (await read(own, right, then)).closed_at is not None
    assert (await read(own, broken, then)).closed_at is None


@pytest.mark.parametrize(
    "change", ["UPDATE period_close SET closing = 0", "DELETE FROM usage_event"]
)
async def test_what_was_told_is_append_only(system: Database, change: str) -> None:
    with pytest.raises(Exception, match="permission denied"):
        async with system.transaction() as tx:
            await tx.execute(change)
