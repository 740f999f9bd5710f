"""Rings for a committed job; finds jobs nobody rang for. A lost ring costs time only."""

from uuid import UUID

import msgspec
import structlog
from arq.connections import ArqRedis, RedisSettings

from runtime import redis, sql
from runtime.database import Connection
from runtime.redis import Signals

SQL = sql.beside(__file__)
log = structlog.get_logger()

BELL = "pagetoll:bell"
"""The channel that free workers hear; the text is a job's id, which they do not rely on."""
CONTROL = "pagetoll:control"
"""The channel that running jobs hear; the text is the id of a job somebody wants to stop."""
ARQ_QUEUE = "pagetoll:arq"
RING = "ring"


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What waits and runs in the whole system now."""

    queued: int
    running: int
    oldest_seconds: float


class Bell:
    """Wakes a worker for a job: at once by a hint, and by arq for a worker that missed it."""

    def __init__(self, signals: Signals, *, arq: bool) -> None:
        self._signals = signals
        self._arq = arq_client(signals.url) if arq else None

    async def ring(self, job_id: UUID) -> None:
        """Never raises and never waits long: the job is committed, and the watchdog rings again."""
        await self._signals.hint(BELL, str(job_id))
        if self._arq is None:
            return
        try:
            await self._arq.enqueue_job(RING, str(job_id), _queue_name=ARQ_QUEUE)
        except redis.LOST as error:
            log.warning("ring_lost", job_id=str(job_id), error=str(error))

    async def control(self, job_id: UUID) -> None:
        """Tells the run of a job to look at its state now and not at its next heartbeat."""
        await self._signals.hint(CONTROL, str(job_id))

    async def close(self) -> None:
        if self._arq is not None:
            await self._arq.aclose(close_connection_pool=True)


def arq_client(url: str) -> ArqRedis:
    """The client of arq; ids travel as JSON, never as pickles."""
    return ArqRedis(
        connection_pool=redis.connection_pool(url),
        job_serializer=msgspec.json.encode,
        job_deserializer=msgspec.json.decode,
        default_queue_name=ARQ_QUEUE,
    )


def arq_settings(url: str) -> RedisSettings:
    return RedisSettings.from_dsn(url)


async def unrung(connection: Connection, *, seconds: float, limit: int) -> list[UUID]:
    """Jobs that have waited for so long unheard; marks them as rung now."""
    rows = await connection.fetch(SQL.unrung, seconds, limit)
    return [row["job_id"] for row in rows]


async def waiting(connection: Connection) -> Waiting:
    row = await connection.fetchrow(SQL.waiting)
    assert row is not None
    return msgspec.convert(dict(row), Waiting)
