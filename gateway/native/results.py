"""GET /v1/jobs/{job_id}/results: final pages in index order, with their content."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

import msgspec
from litestar import Router, get
from litestar.di import Provide
from litestar.params import Parameter

from accounting.keys import Principal
from gateway.native import parameters
from gateway.native.parameters import Limit
from jobs import lifecycle, results, status
from jobs.records import Job, Page, StoredPage
from jobs.vocabulary import PageStatus, State
from runtime.content import ContentStore
from runtime.database import Connection, Database
from runtime.errors import Refusal

ANSWER_BYTES_MAX = 32 * 1024 * 1024
"""Content of one answer at most, but for a single page that is larger itself."""

Index = Annotated[str | None, Parameter(description="An index: the pages beyond it are given.")]


class PageList(msgspec.Struct, frozen=True, kw_only=True):
    """Pages in index order. `next` is null when no more will come; else ask again with it."""

    items: list[Page]
    next: int | None
    job_state: State


class PageFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which pages are asked for."""

    after: int
    limit: int
    status: PageStatus | None
    include_content: bool


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What one snapshot told: pages, and where the next call goes on."""

    stored: list[StoredPage]
    next: int | None


def wanted_pages(
    after: Index = None,
    limit: Limit = 100,
    status: PageStatus | None = None,
    include_content: bool = True,
) -> PageFilter:
    start = parameters.index_cursor(after, start=-1, end=parameters.INDEX_MAX)
    return PageFilter(after=start, limit=limit, status=status, include_content=include_content)


@get(
    "/jobs/{job_id:str}/results",
    opt={"scope": "jobs:read"},
    dependencies={"wanted": Provide(wanted_pages, sync_to_thread=False)},
)
async def read_results(
    job_id: str,
    principal: Principal,
    database: Database,
    content: ContentStore,
    wanted: PageFilter,
) -> PageList:
    """Gives the final pages beyond an index, each exactly once, also while the job runs."""
    job_uuid = parameters.job_id(job_id)
    async with database.snapshot(principal.tenant_id) as snapshot:
        job = await _read_job(
            snapshot, principal.tenant_id, job_uuid, content=wanted.include_content
        )
        found = await _find(snapshot, principal.tenant_id, job, wanted)
    if wanted.include_content:
        kept = fitting(found.stored)
        pages = await results.with_content(content, kept)
        following = found.next if len(kept) == len(found.stored) else kept[-1].page.index
    else:
        pages = [stored.page for stored in found.stored]
        following = found.next
    return PageList(items=pages, next=following, job_state=job.state)


async def _read_job(tx: Connection, tenant_id: UUID, job_id: UUID, *, content: bool) -> Job:
    """The job; raises Refusal `result_expired` where content is asked for that is gone."""
    job = await status.read(tx, tenant_id, job_id)
    if content and await status.content_is_gone(tx, tenant_id, job_id):
        raise Refusal(
            "result_expired",
            "The content of this job is no longer kept; its pages can be read without it.",
        )
    return job


async def _find(tx: Connection, tenant_id: UUID, job: Job, wanted: PageFilter) -> Found:
    stored, more = await results.final_pages(
        tx, tenant_id, job.job_id, after=wanted.after, status=wanted.status, limit=wanted.limit
    )
    last = stored[-1].page.index if stored else wanted.after
    if more:
        return Found(stored=stored, next=last)
    if lifecycle.is_final(job.state):
        return Found(stored=stored, next=None)
    if wanted.status is not None:
        # what the filter passed over need not be looked at again
        last = max(last, await results.last_final(tx, tenant_id, job.job_id))
    return Found(stored=stored, next=last)


def fitting(stored: Sequence[StoredPage]) -> list[StoredPage]:
    """As many of the pages as one answer may hold, at least one where there is one."""
    kept: list[StoredPage] = []
    size = 0
    for one in stored:
        size += one.content_bytes
        if kept and size > ANSWER_BYTES_MAX:
            break
        kept.append(one)
    return kept


ROUTER = Router("/", route_handlers=[read_results], tags=["Results"])
