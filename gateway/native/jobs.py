"""GET /v1/jobs and one job's status; DELETE cancels it."""

from typing import Annotated

import msgspec
import structlog
from litestar import Response, Router, delete, get
from litestar.di import Provide
from litestar.params import Parameter

from accounting.keys import Principal
from gateway.commands import Commands
from gateway.native import parameters
from gateway.native.parameters import Time, Window
from jobs import lifecycle, progress, status
from jobs.records import Job
from jobs.status import JobFilter
from jobs.vocabulary import Kind, State
from runtime.database import Database

READ = {"scope": "jobs:read"}
STATUS = {"scope": "jobs:read", "bucket": "status"}
WRITE = {"scope": "jobs:write"}

Tag = Annotated[str | None, Parameter(max_length=64, pattern=r"^[^\x00]*$")]

# `state` itself is a word of the framework.
StateFilter = Annotated[State | None, Parameter(query="state")]


class JobList(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, newest first; `next` is null at the end."""

    items: list[Job]
    next: str | None


def wanted_jobs(
    kind: Kind | None = None,
    job_state: StateFilter = None,
    created_after: Time = None,
    created_before: Time = None,
    tag: Tag = None,
) -> JobFilter:
    return JobFilter(
        kind=kind,
        state=job_state,
        created_after=parameters.time("created_after", created_after),
        created_before=parameters.time("created_before", created_before),
        tag=tag,
    )


@get("/jobs", opt=READ, dependencies={"wanted": Provide(wanted_jobs, sync_to_thread=False)})
async def list_jobs(
    principal: Principal, database: Database, wanted: JobFilter, window: Window
) -> JobList:
    """Lists the tenant's jobs, newest first."""
    async with database.snapshot(principal.tenant_id) as snapshot:
        found, following = await status.newest(
            snapshot, principal.tenant_id, wanted, after=window.after, limit=window.limit
        )
    return JobList(items=found, next=following)


@get("/jobs/{job_id:str}", opt=STATUS)
async def read_job(job_id: str, principal: Principal, commands: Commands) -> Response[Job]:
    """Tells a job's status, all of it true at one instant."""
    structlog.contextvars.bind_contextvars(job_id=job_id[:36])
    return shown(await commands.read(principal, parameters.job_id(job_id)))


@delete("/jobs/{job_id:str}", status_code=200, opt=WRITE)
async def cancel_job(job_id: str, principal: Principal, commands: Commands) -> Response[Job]:
    """Cancels a job; what was not charged until now never will be. Final jobs stay as they are."""
    structlog.contextvars.bind_contextvars(job_id=job_id[:36])
    return shown(await commands.cancel(principal, parameters.job_id(job_id)))


def shown(job: Job) -> Response[Job]:
    """A status with the time to wait before the next, where there will be a next."""
    if lifecycle.is_final(job.state):
        return Response(job)
    return Response(job, headers={"Retry-After": str(progress.retry_after_seconds(job))})


ROUTER = Router("/", route_handlers=[list_jobs, read_job, cancel_job], tags=["Jobs"])
