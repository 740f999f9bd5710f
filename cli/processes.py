"""`pagetoll gateway`, `worker` and `ledger`: one process each, for servers of your own."""

import os
import sys
from typing import NoReturn

import rich_click as click

from cli import up


@click.command()
def gateway() -> None:
    """Serve the HTTP API (needs PAGETOLL_DATABASE_URL and PAGETOLL_REDIS_URL)."""
    become("gateway")


@click.command()
def worker() -> None:
    """Run jobs (needs PAGETOLL_DATABASE_URL and PAGETOLL_REDIS_URL)."""
    become("workers")


@click.command()
def ledger() -> None:
    """Settle, expire and retain (needs PAGETOLL_DATABASE_URL and PAGETOLL_REDIS_URL)."""
    become("accounting")


def become(module: str) -> NoReturn:
    """Replaces this process, so that signals reach the one that they are meant for."""
    process = up.process(module, up.load_settings())
    sys.stdout.flush()
    sys.stderr.flush()
    command = [str(part) for part in process.command]
    os.execve(command[0], command, dict(process.environment))  # noqa: S606 # our own command
