"""Pause, resume, extend and retry a job; each may be sent again without doing more."""

from typing import Any

import structlog
from litestar import Request, Response, Router, post

from accounting.keys import Principal
from gateway.bodies import StrictJson
from gateway.commands import Commands
from gateway.native import parameters
from gateway.native.jobs import WRITE, shown
from gateway.native.submissions import HEADERS, SUBMIT, IdempotencyKey, accepted
from jobs.records import Job
from jobs.requests import Extension


@post("/jobs/{job_id:str}/pause", status_code=200, opt=WRITE)
async def pause_job(job_id: str, principal: Principal, commands: Commands) -> Response[Job]:
    """Pauses a job: pages in flight finish, none is begun, and the time that is left is kept."""
    structlog.contextvars.bind_contextvars(job_id=job_id[:36])
    return shown(await commands.pause(principal, parameters.job_id(job_id)))


@post("/jobs/{job_id:str}/resume", status_code=200, opt=WRITE)
async def resume_job(job_id: str, principal: Principal, commands: Commands) -> Response[Job]:
    """Puts a paused job back into the line, with the time that was left."""
    structlog.contextvars.bind_contextvars(job_id=job_id[:36])
    return shown(await commands.resume(principal, parameters.job_id(job_id)))


@post("/jobs/{job_id:str}/extend", dto=StrictJson, return_dto=None, status_code=200, opt=WRITE)
async def extend_job(
    job_id: str, data: Extension, principal: Principal, commands: Commands
) -> Response[Job]:
    """Raises the limits of a job that has not ended: its pages, its time, its credits.

    URLs that only the page limit kept out are admitted; further credits are held at once.
    """
    structlog.contextvars.bind_contextvars(job_id=job_id[:36])
    job, moved = await commands.extend(principal, parameters.job_id(job_id), data)
    answer = shown(job)
    answer.headers["X-Credits-Reserved"] = str(moved)
    return answer


@post("/jobs/{job_id:str}/retry", status_code=202, opt=SUBMIT, response_headers=HEADERS)
async def retry_job(
    request: Request[Any, Any, Any],
    job_id: str,
    principal: Principal,
    commands: Commands,
    idempotency_key: IdempotencyKey = None,
) -> Response[Job]:
    """Makes a new job of the URLs that failed in a way that may pass; discovers nothing."""
    del idempotency_key  # declared for the document; a header sent twice shows only in the request
    structlog.contextvars.bind_contextvars(job_id=job_id[:36])
    submitted = await commands.retry(
        principal,
        parameters.job_id(job_id),
        idempotency_key=parameters.idempotency_key(request),
    )
    return accepted(submitted)


ROUTER = Router("/", route_handlers=[pause_job, resume_job, extend_job, retry_job], tags=["Jobs"])
