"""What arq may call: one ring. Leases, retries, fairness and status live in PostgreSQL."""

import asyncio
from typing import Any

import msgspec
import structlog
from arq.connections import ArqRedis
from arq.worker import Worker, func

from jobs import queue
from runtime import loops
from workers.runner import Runner

log = structlog.get_logger()

POLL_SECONDS = 0.5
RING_SECONDS = 5
RINGS_AT_ONCE = 100
TRIES_MAX = 1_000_000
RESTART_SECONDS = 1.0


async def serve(redis_url: str, runner: Runner, stop: asyncio.Event) -> None:
    """Answers arq's rings until `stop`; arq ends on a lost Redis, and is begun again."""
    while not stop.is_set():
        client = queue.arq_client(redis_url)
        worker = _worker(client, runner)
        serving = asyncio.create_task(worker.async_run())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        raised = await loops.end(serving, stopping)
        await _close(worker, client)
        if not stop.is_set():
            log.warning("arq_begun_again", errors=[str(error) for error in raised])
            await asyncio.sleep(RESTART_SECONDS)


def _worker(client: ArqRedis, runner: Runner) -> Worker:
    async def ring(ctx: dict[Any, Any], *args: Any, **kwargs: Any) -> None:  # noqa: ANN401, ARG001 # arq's signature
        runner.ring()

    return Worker(
        functions=[func(ring, name=queue.RING, keep_result=0, timeout=RING_SECONDS)],
        queue_name=queue.ARQ_QUEUE,
        redis_pool=client,
        handle_signals=False,
        poll_delay=POLL_SECONDS,
        max_jobs=RINGS_AT_ONCE,
        max_tries=TRIES_MAX,
        keep_result=0,
        log_results=False,
        job_serializer=msgspec.json.encode,
        job_deserializer=msgspec.json.decode,
    )


async def _close(worker: Worker, client: ArqRedis) -> None:
    """Not by arq's own close(), which asks the lost Redis first and uses what redis-py retired."""
    await loops.end(*worker.tasks.values())
    await client.aclose(close_connection_pool=True)
