"""Runs tests in a process of their own on a shared server, in databases that are one mutant."""

import asyncio
import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

from migrations import schema
from runtime import database
from runtime.embedded.postgres import OWNER, EmbeddedPostgres
from tests.mutants import mutation
from tests.mutants.mutation import ROOT, Mutant
from tests.support.database import TEMPLATE, administer
from tests.support.servers import FAST

MIGRATED = "pagetoll_migrated"
ENOUGH_SECONDS = 240
TEST_SECONDS = 60
NOTICED = re.compile(r"^(?:FAILED|ERROR) \S+?::(.+?)(?: - |$)", re.MULTILINE)
OPTIONS = (
    *("-q", "-x", "-p", "no:cacheprovider", f"--timeout={TEST_SECONDS}"),
    # the process that is forked has plugins loaded already
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)


class Shared:
    """Takes the place of the fixtures that start a server and migrate a database."""

    def __init__(self, running: EmbeddedPostgres) -> None:
        self._running = running

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        # Registered last, so that these fixtures go before those of tests/support.
        session.config.pluginmanager.register(fixtures(self._running))


def fixtures(running: EmbeddedPostgres) -> ModuleType:
    made = ModuleType("fixtures_of_mutants")

    @pytest.fixture(scope="session")
    def postgres_server() -> EmbeddedPostgres:
        return running

    @pytest.fixture(scope="session")
    def database_template() -> str:
        return TEMPLATE

    made.__dict__.update(postgres_server=postgres_server, database_template=database_template)
    return made


@contextmanager
def server() -> Iterator[EmbeddedPostgres]:
    """A server with a migrated database that has all its guards."""
    with tempfile.TemporaryDirectory(prefix="pagetoll-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        made = EmbeddedPostgres(Path(folder) / "servers", FAST)
        made.start()
        try:
            administer(made, f"CREATE DATABASE {MIGRATED} OWNER {OWNER}")
            schema.upgrade(made.url(OWNER, MIGRATED))
            yield made
        finally:
            made.stop()


def first_to_notice(
    running: EmbeddedPostgres, mutant: Mutant | None, tests: Sequence[str]
) -> str | None:
    """The first test that fails in databases that lack the mutant's guard; None where none does."""
    administer(running, f"DROP DATABASE IF EXISTS {TEMPLATE}")
    administer(running, f"CREATE DATABASE {TEMPLATE} TEMPLATE {MIGRATED} OWNER {OWNER}")
    if mutant is not None:
        asyncio.run(_mutate(running.url(OWNER, TEMPLATE), mutant))
    with tempfile.TemporaryFile("w+") as told:
        child = os.fork()
        if child == 0:
            os._exit(_run_tests(running, tests, told.fileno()))
        status = _ended(child)
        told.seek(0)
        said = told.read()
    if status == 0:
        return None
    if os.WIFSIGNALED(status):
        return f"a standstill of {ENOUGH_SECONDS} s"
    found = NOTICED.search(said)
    return found[1] if found else f"pytest itself: {said[-200:]!r}"


def _run_tests(running: EmbeddedPostgres, tests: Sequence[str], output: int) -> int:
    os.environ["PAGETOLL_TEST_HASTY"] = "1"
    os.chdir(ROOT)
    os.dup2(output, 1)
    os.dup2(output, 2)
    return int(pytest.main([*OPTIONS, *tests], plugins=[Shared(running)]))


def _ended(child: int) -> int:
    """How the child ended; a mutant may keep a test, or its clearing up, from ever ending."""
    limit = threading.Timer(ENOUGH_SECONDS, os.kill, (child, signal.SIGKILL))
    limit.start()
    _, status = os.waitpid(child, 0)
    limit.cancel()
    return status


async def _mutate(url: str, mutant: Mutant) -> None:
    connection = await database.connect(url)
    try:
        async with connection.transaction():
            await connection.execute("SET LOCAL check_function_bodies = off")
            await connection.execute(mutation.statement(mutant))
    finally:
        await connection.close()
