"""One throw-away PostgreSQL and one Redis for the whole session, on unix sockets."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.embedded.binaries import Source
from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis

POSTGRES_SOURCE: Source = (
    "debian" if os.environ.get("PAGETOLL_TEST_POSTGRES") == "debian" else "any"
)
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
"""Options for data that nobody will miss."""


@pytest.fixture(scope="session")
def servers_folder() -> Iterator[Path]:
    """A short path that the server's own account can enter, unlike pytest's folders."""
    folder = Path(tempfile.mkdtemp(prefix="pagetoll-test-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def postgres_server(servers_folder: Path) -> Iterator[EmbeddedPostgres]:
    """A running server with the roles and the empty database `pagetoll`, without fsync."""
    server = EmbeddedPostgres(servers_folder / "servers", FAST, source=POSTGRES_SOURCE)
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def redis_server(servers_folder: Path) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(servers_folder / "servers")
    server.start()
    yield server
    server.stop()
