"""Starts the ledger process: python -m accounting."""

import asyncio
import sys

from accounting.service import Ledger
from runtime import database, process
from runtime.content import ContentStore
from runtime.database import Database
from runtime.settings import Settings


async def main(settings: Settings, stop: asyncio.Event) -> None:
    process.serve_metrics(settings.metrics_host, settings.ledger_metrics_port)
    pool = Database(settings.system_url, role=database.SYSTEM, size=settings.pool_size)
    await pool.open()
    try:
        await Ledger(settings, pool, ContentStore(settings.content_place)).run(stop)
    finally:
        await pool.close()


if __name__ == "__main__":
    sys.exit(process.run("ledger", main))
