"""A retry: exactly the URLs that failed in a way that may pass, under what was asked for."""

import pytest

from jobs import retries
from jobs.status import JobNotFound
from runtime.database import Database
from runtime.errors import Refusal
from tests.support import builders, work


async def ended(app: Database, system: Database, *outcomes, **fields):
    """The ended job of a tenant: the start page as told first, and a link for each further one."""
    tenant = await builders.a_tenant(system, credits=1_000)
    await builders.a_job(app, tenant.tenant_id, **fields)
    run = await work.claim(system)
    await work.settle(system, run, found=[work.link(number) for number in range(len(outcomes) - 1)])
    await work.pages(system, run)
    await work.settle(system, run, list(outcomes))
    await work.finish(system, run)
    return run


async def of(app: Database, run, job_id=None):
    async with app.snapshot(run.lease.tenant_id) as snapshot:
        return await retries.of(snapshot, run.lease.tenant_id, job_id or run.lease.job_id)


async def test_failed_pages_that_may_do_better_are_fetched_again(
    app: Database, system: Database
) -> None:
    run = await ended(
        app,
        system,
        work.ok(0),
        work.failed(1, "timeout"),
        work.failed(2, "not_found"),
        work.failed(3, "rate_limited"),
        work.skipped(4, "duplicate"),
        formats=["text"],
        max_depth=3,
    )

    made = await of(app, run)

    assert [url for url, _ in made.seeds] == ["https://example.com/0", "https://example.com/2"]
    assert (made.request.max_pages, made.request.max_depth) == (2, 0)
    assert (made.request.formats, made.request.sitemap) == (["text"], "skip")


async def test_a_job_with_nothing_to_retry_is_refused(app: Database, system: Database) -> None:
    run = await ended(app, system, work.ok(0), work.failed(1, "not_found"))

    with pytest.raises(Refusal, match="No page"):
        await of(app, run)


async def test_a_job_that_goes_on_is_refused(app: Database, system: Database) -> None:
    run = await ended(app, system, work.failed(0, "timeout"))
    going_on = await builders.a_job(app, run.lease.tenant_id)

    with pytest.raises(Refusal, match="has ended"):
        await of(app, run, going_on)


async def test_another_tenants_job_is_no_job(app: Database, system: Database) -> None:
    run = await ended(app, system, work.failed(0, "timeout"))
    other = await ended(app, system, work.failed(0, "timeout"))

    with pytest.raises(JobNotFound):
        await of(app, run, other.lease.job_id)
