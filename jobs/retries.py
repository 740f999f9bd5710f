"""A retry of a final job: a request for those of its failed URLs that may do better."""

from uuid import UUID

import msgspec

from jobs.requests import REQUEST_OF, JobRequest
from jobs.status import JobNotFound
from jobs.vocabulary import Reason
from runtime import sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

RETRYABLE: frozenset[Reason] = frozenset(
    {"timeout", "upstream_error", "rate_limited", "internal_error"}
)
"""Why a page or a job failed that may do better at another time."""


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """A request for exactly these URLs, each with its canonical key in hexadecimal."""

    request: JobRequest
    seeds: list[tuple[str, str]]


async def of(tx: Connection, tenant_id: UUID, job_id: UUID) -> Retry:
    """Raises JobNotFound, or Refusal of a job that goes on or has nothing that can be retried.

    The new job keeps what the old one asked for, but discovers nothing.
    """
    row = await tx.fetchrow(SQL.job, tenant_id, job_id)
    if row is None:
        raise JobNotFound
    if not row["is_final"]:
        raise Refusal("invalid_state", "A job can be retried when it has ended.")
    pages = await tx.fetch(SQL.failed, tenant_id, job_id, sorted(RETRYABLE))
    if not pages:
        raise Refusal("invalid_state", "No page of this job failed in a way that may pass.")
    request = msgspec.convert(row["request"], REQUEST_OF[row["kind"]])
    return Retry(
        request=msgspec.structs.replace(
            request,
            max_pages=len(pages),
            max_depth=0,
            max_rounds=None,
            sitemap="skip",
            quote_id=None,
        ),
        seeds=[(page["url"], page["url_key"].hex()) for page in pages],
    )


def key_of(job_id: UUID) -> str:
    """The idempotency key of a job's retry; no customer can send one that begins like this."""
    return f"\x1fretry:{job_id}"
