"""Starts a worker process: python -m workers."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from jobs.addresses import AddressPolicy
from runtime import database, process
from runtime.content import ContentStore
from runtime.database import Database
from runtime.redis import Signals
from runtime.settings import Settings
from workers import tasks
from workers.engine.fetch import Fetcher, FetchLimits
from workers.engine.page_threads import PageThreads
from workers.engine.robots import RobotsCache
from workers.host_pacing import SharedGate
from workers.parts import Parts
from workers.probes import Prober
from workers.runner import Runner


async def main(settings: Settings, stop: asyncio.Event) -> None:
    process.serve_metrics(settings.metrics_host, settings.worker_metrics_port)
    signals = Signals(settings.redis_url)
    async with worker_parts(settings, signals) as parts:
        prober = Prober(parts)
        runner = Runner(parts, signals, also_ring=prober.ring)
        async with asyncio.TaskGroup() as group:
            group.create_task(runner.serve(stop))
            group.create_task(prober.serve(stop))
            group.create_task(parts.gate.keep(stop))
            if settings.arq:
                group.create_task(tasks.serve(settings.redis_url, runner, stop))


@asynccontextmanager
async def worker_parts(settings: Settings, signals: Signals) -> AsyncGenerator[Parts]:
    """Opens what the runs share, and closes it when the worker ends."""
    pool = Database(settings.system_url, role=database.SYSTEM, size=settings.pool_size)
    policy = AddressPolicy.of([str(network) for network in settings.networks])
    connections = settings.worker_slots * settings.job_concurrency
    limits = FetchLimits(connections=connections, connections_per_host=connections)
    with PageThreads(settings.extract_threads) as threads:
        async with Fetcher(policy, limits, settings.user_agent) as fetcher:
            robots = RobotsCache(fetcher, product_token(settings.user_agent))
            await pool.open()
            try:
                yield Parts(
                    settings=settings,
                    database=pool,
                    store=ContentStore(settings.content_place),
                    fetcher=fetcher,
                    robots=robots,
                    gate=SharedGate(signals),
                    threads=threads,
                    policy=policy,
                )
            finally:
                await robots.close()
                await pool.close()
                await signals.close()


def product_token(user_agent: str) -> str:
    """What robots.txt groups name us by: the user agent's first word, without its version."""
    return user_agent.partition("/")[0].partition(" ")[0]


if __name__ == "__main__":
    sys.exit(process.run("worker", main))
