"""Does by hand what a worker does with a job, so that tests can stop between any two steps."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from accounting import metering, reconciliation
from jobs import runs, status, urls
from jobs.outcomes import Facts, Found, PageOutcome
from jobs.records import Job
from jobs.runs import Claim, Run
from runtime.database import Database

OWNER = "worker-of-a-test"


async def claim(system: Database, *, owner: str = OWNER, lease_seconds: float = 60.0) -> Run:
    async with system.connection() as connection:
        run = await runs.claim_job(connection, owner, lease_seconds=lease_seconds)
    assert run is not None, "no job may start now"
    return run


async def nothing_to_claim(system: Database) -> bool:
    async with system.connection() as connection:
        return await runs.claim_job(connection, OWNER, lease_seconds=60.0) is None


async def pages(
    system: Database, run: Run, limit: int = 100, *, by_level: bool = False
) -> list[Claim]:
    async with system.connection() as connection:
        return await runs.claim_pages(connection, run.lease, limit=limit, by_level=by_level)


async def settle(
    system: Database,
    run: Run,
    outcomes: Sequence[PageOutcome] = (),
    found: Sequence[Found] = (),
    facts: Facts | None = None,
) -> str:
    async with system.connection() as connection:
        return await metering.settle_pages(
            connection, run.lease, run.prices, outcomes, found, facts or Facts()
        )


async def finish(system: Database, run: Run, reason: Any = "frontier_exhausted") -> str:
    async with system.connection() as connection:
        return await metering.finish(connection, run.lease, reason)


async def status_of(database: Database, tenant_id: UUID, job_id: UUID) -> Job:
    async with database.connection() as connection:
        return await status.read(connection, tenant_id, job_id)


async def move_time(system: Database, job_id: UUID, **minutes: float) -> None:
    """Moves stored times of a job into the past, by column and minutes."""
    moves = ", ".join(
        f"{column} = {column} - make_interval(mins => {value})" for column, value in minutes.items()
    )
    async with system.connection() as connection:
        await connection.execute(f"UPDATE job SET {moves} WHERE job_id = $1", job_id)


async def violations(system: Database) -> list[reconciliation.Verdict]:
    async with system.snapshot() as snapshot:
        return reconciliation.broken(await reconciliation.prove(snapshot))


def ok(page_no: int, **fields: Any) -> PageOutcome:
    return PageOutcome(page_no=page_no, status="succeeded", http_status=200, **fields)


def failed(page_no: int, reason: Any = "not_found") -> PageOutcome:
    return PageOutcome(page_no=page_no, status="failed", reason=reason)


def skipped(page_no: int, reason: Any = "duplicate") -> PageOutcome:
    return PageOutcome(page_no=page_no, status="skipped", reason=reason)


def link(number: int, *, depth: int = 1, excluded: Any = None) -> Found:
    url = f"https://example.com/{number}"
    return Found(
        key=urls.url_key(url).hex(),
        url=url,
        depth=depth,
        source="link",
        found_on=0,
        excluded=excluded,
    )


async def end_all(system: Database) -> None:
    """Ends what a test left open, as the watchdog would once its time is up."""
    async with system.connection() as connection:
        await connection.execute(
            "UPDATE job SET queue_limit_at = now(), deadline_at = now() - interval '1 hour', "
            "paused_at = paused_at - interval '8 days' WHERE finished_at IS NULL"
        )
        while await metering.sweep_overdue(connection, limit=100):
            pass


async def excluded(system: Database, run: Run) -> dict[str, int]:
    """How many URLs of a run's job were excluded for each reason."""
    async with system.connection() as connection:
        rows = await connection.fetch(
            "SELECT reason, count(*) AS n FROM excluded_url WHERE job_id = $1 GROUP BY 1",
            run.lease.job_id,
        )
    return {row["reason"]: row["n"] for row in rows}
