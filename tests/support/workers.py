"""Runs jobs in the test's own loop, with the real parts of a worker."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import msgspec
import pytest_asyncio

from jobs import results
from jobs.records import Job, Page
from runtime import settings
from runtime.database import Database
from runtime.embedded.redis import EmbeddedRedis
from runtime.redis import Signals
from runtime.settings import Settings
from tests.support import builders, work
from tests.support.database import DatabaseUrls
from workers.__main__ import worker_parts
from workers.parts import Parts
from workers.run_job import JobRun


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """A job after its run, with all its pages by URL and its excluded URLs by reason."""

    job: Job
    pages: dict[str, Page]
    excluded: dict[str, str]

    def outcomes(self) -> dict[str, str]:
        return {url: page.reason or page.status for url, page in self.pages.items()}


def worker_settings(urls: DatabaseUrls, redis_url: str, folder: Path, **changes: str) -> Settings:
    """Crawls may reach loopback; content goes to the folder."""
    chosen = {
        "PAGETOLL_DATABASE_URL": urls.app,
        "PAGETOLL_SYSTEM_DATABASE_URL": urls.system,
        "PAGETOLL_REDIS_URL": redis_url,
        "PAGETOLL_DATA_DIR": str(folder),
        "PAGETOLL_ALLOW_NETWORKS": "127.0.0.0/8",
    }
    return settings.load(chosen | {f"PAGETOLL_{name.upper()}": v for name, v in changes.items()})


@pytest_asyncio.fixture(loop_scope="session")
async def parts(
    database_urls: DatabaseUrls, redis_server: EmbeddedRedis, tmp_path: Path
) -> AsyncIterator[Parts]:
    chosen = worker_settings(database_urls, redis_server.url, tmp_path)
    async with worker_parts(chosen, Signals(redis_server.url)) as made:
        yield made


async def submit(app: Database, system: Database, url: str, **fields: object) -> tuple[UUID, UUID]:
    tenant = await builders.a_tenant(system, credits=10_000)
    job_id = await builders.a_job(app, tenant.tenant_id, **({"url": url, "max_pages": 50} | fields))
    return tenant.tenant_id, job_id


async def start(parts: Parts) -> tuple[JobRun, "asyncio.Task[None]"]:
    """A claimed job on its way."""
    job_run = JobRun(parts, await work.claim(parts.database))
    return job_run, asyncio.create_task(job_run.run())


async def run_next(parts: Parts) -> None:
    """Claims the next job and runs it to the end of its run."""
    await JobRun(parts, await work.claim(parts.database)).run()


async def crawl(app: Database, parts: Parts, url: str, **fields: object) -> Ended:
    """Submits a crawl, runs it, and reads all there is to read."""
    tenant_id, job_id = await submit(app, parts.database, url, **fields)
    await run_next(parts)
    return await ended(app, parts, tenant_id, job_id)


async def ended(app: Database, parts: Parts, tenant_id: UUID, job_id: UUID) -> Ended:
    job = await work.status_of(app, tenant_id, job_id)
    async with app.transaction(tenant_id) as tx:
        stored, _ = await results.final_pages(
            tx, tenant_id, job_id, after=-1, status=None, limit=100_000
        )
        rows = await tx.fetch("SELECT url, reason FROM excluded_url WHERE job_id = $1", job_id)
    pages = await results.with_content(parts.store, stored)
    return Ended(
        job=job,
        pages={page.url: page for page in pages},
        excluded={row["url"]: row["reason"] for row in rows},
    )
