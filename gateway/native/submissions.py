"""POST /v1/crawls: reserves credits, makes the job, answers 202 with it."""

from typing import Annotated, Any

from litestar import Request, Response, Router, post
from litestar.datastructures import ResponseHeader
from litestar.params import Parameter

from accounting.keys import Principal
from gateway.bodies import StrictJson
from gateway.commands import Commands, Submitted
from gateway.native import parameters
from jobs import lifecycle, progress
from jobs.records import Job
from jobs.requests import CrawlRequest

SUBMIT = {"scope": "jobs:write", "bucket": "submit"}
HEADERS = [
    ResponseHeader(name="Location", description="The job's status.", documentation_only=True),
    ResponseHeader(
        name="Retry-After", description="Seconds until it is worth asking.", documentation_only=True
    ),
    ResponseHeader(
        name="X-Credits-Reserved", description="What this call reserved.", documentation_only=True
    ),
    ResponseHeader(
        name="X-Credits-Charged", description="What this call charged: 0.", documentation_only=True
    ),
    ResponseHeader(
        name="Idempotent-Replayed",
        description="true where an earlier call with this key had made the job.",
        documentation_only=True,
    ),
]
IdempotencyKey = Annotated[
    str | None,
    Parameter(
        header="Idempotency-Key",
        description="1 to 255 visible ASCII characters; the same key and body make one job.",
    ),
]


@post("/crawls", dto=StrictJson, return_dto=None, status_code=202, opt=SUBMIT)
async def submit_crawl(
    request: Request[Any, Any, Any],
    data: CrawlRequest,
    principal: Principal,
    commands: Commands,
    idempotency_key: IdempotencyKey = None,
) -> Response[Job]:
    """Submits a crawl. Credits for `max_pages` pages are reserved, succeeded pages are charged."""
    del idempotency_key  # declared for the document; a header sent twice shows only in the request
    submitted = await commands.submit(
        principal, data, idempotency_key=parameters.idempotency_key(request)
    )
    return accepted(submitted)


def accepted(submitted: Submitted) -> Response[Job]:
    """The 202 of every call that makes a job."""
    job = submitted.job
    headers = {
        "Location": f"/v1/jobs/{job.job_id}",
        "X-Credits-Reserved": str(submitted.enqueued.credits_reserved),
        "X-Credits-Charged": "0",
    }
    if not lifecycle.is_final(job.state):
        headers["Retry-After"] = str(progress.retry_after_seconds(job))
    if submitted.enqueued.replayed:
        headers["Idempotent-Replayed"] = "true"
    return Response(job, status_code=202, headers=headers)


ROUTER = Router("/", route_handlers=[submit_crawl], response_headers=HEADERS, tags=["Submit"])
