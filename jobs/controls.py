"""Pause and resume a job, and how its run comes to rest."""

from typing import Literal
from uuid import UUID

from jobs.runs import Lease
from jobs.status import JobNotFound
from runtime import sql
from runtime.database import Connection
from runtime.errors import Refusal

SQL = sql.beside(__file__)

PauseEnd = Literal["paused", "handed_back", "cancelled", "unfinished", "stale"]


class InvalidState(Refusal):
    """The job is at its end, or on the way there; nothing has changed."""

    def __init__(self, what: str) -> None:
        super().__init__("invalid_state", f"A job that has ended, or is being cancelled, {what}.")


async def pause(connection: Connection, tenant_id: UUID, job_id: UUID) -> str:
    """The state after it: `paused`, or `pausing` while a run lets its pages finish.

    Raises JobNotFound or InvalidState. Again changes nothing.
    """
    return checked(await connection.fetchval(SQL.pause, tenant_id, job_id), "cannot be paused")


async def resume(connection: Connection, tenant_id: UUID, job_id: UUID) -> str:
    """The state after it: `queued` with the time that was left; again changes nothing.

    Raises JobNotFound or InvalidState.
    """
    return checked(await connection.fetchval(SQL.resume, tenant_id, job_id), "cannot be resumed")


async def end_pause(connection: Connection, lease: Lease) -> PauseEnd:
    """The run of a pausing job has let its pages finish."""
    answer: PauseEnd = await connection.fetchval(
        SQL.end_pause, lease.tenant_id, lease.job_id, lease.token
    )
    return answer


async def pause_for_budget(connection: Connection, lease: Lease, *, extensions: int) -> PauseEnd:
    """The run's job waits for credits; `unfinished` where it was extended since the last look."""
    answer: PauseEnd = await connection.fetchval(
        SQL.pause_for_budget, lease.tenant_id, lease.job_id, lease.token, extensions
    )
    return answer


def checked(answer: str, what: str) -> str:
    """The state that a control answers with; raises JobNotFound or InvalidState."""
    if answer == "not_found":
        raise JobNotFound
    if answer == "refused":
        raise InvalidState(what)
    return answer
