"""The embedded PostgreSQL survives crashes and leaves nothing behind."""

import asyncio
import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from runtime.embedded import postgres
from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.processes import ServerFailed
from tests.support.servers import FAST, POSTGRES_SOURCE

PARENT = """
import sys, time
from pathlib import Path
from runtime.embedded.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), ("fsync=off",), source=sys.argv[2])
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def server(servers_folder: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(
        servers_folder / request.node.name, ("fsync=off",), source=POSTGRES_SOURCE
    )
    yield server
    server.stop()


async def run(server: EmbeddedPostgres, statement: str, user: str = "postgres") -> object:
    connection = await asyncpg.connect(server.url(user))
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close()


async def test_roles_and_database_are_there_and_none_is_a_superuser(
    postgres_server: EmbeddedPostgres,
) -> None:
    connection = await asyncpg.connect(postgres_server.url(postgres.OWNER))
    try:
        roles = await connection.fetch(
            "SELECT rolname, rolsuper, rolbypassrls, rolcanlogin, rolcreaterole FROM pg_roles"
            " WHERE rolname LIKE 'pagetoll%' ORDER BY rolname"
        )
        owner = await connection.fetchval(
            "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'pagetoll'"
        )
    finally:
        await connection.close()

    assert [tuple(role) for role in roles] == [
        ("pagetoll_app", False, False, True, False),
        ("pagetoll_owner", False, False, True, True),
        ("pagetoll_system", False, False, True, False),
    ]
    assert owner == "pagetoll_owner"


async def test_the_owner_may_grant_the_other_roles(postgres_server: EmbeddedPostgres) -> None:
    connection = await asyncpg.connect(postgres_server.url(postgres.OWNER))
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute("CREATE ROLE a_clerk; GRANT pagetoll_app TO a_clerk")
        await connection.execute("CREATE TABLE owned (id int); GRANT SELECT ON owned TO a_clerk")
        await transaction.rollback()
    finally:
        await connection.close()


async def test_text_is_utf8_and_time_is_utc(postgres_server: EmbeddedPostgres) -> None:
    assert await run(postgres_server, "SELECT current_setting('server_encoding')") == "UTF8"
    assert await run(postgres_server, "SELECT current_setting('timezone')") == "UTC"
    assert await run(postgres_server, "SELECT current_setting('data_checksums')") == "on"
    assert await run(postgres_server, "SELECT current_setting('listen_addresses')") == ""


async def test_a_stopped_server_starts_again_with_its_data(server: EmbeddedPostgres) -> None:
    server.start()
    await run(server, "CREATE TABLE kept AS SELECT 7 AS n", postgres.OWNER)

    server.stop()
    assert not server.is_alive()
    assert server.exit_code == 0
    server.start()

    assert await run(server, "SELECT n FROM kept", postgres.OWNER) == 7


async def test_a_killed_server_starts_again_with_what_was_committed(
    server: EmbeddedPostgres,
) -> None:
    server.start()
    await run(server, "CREATE TABLE kept AS SELECT 7 AS n", postgres.OWNER)
    connection = await asyncpg.connect(server.url())  # its session outlives the postmaster a while

    assert server.process is not None
    server.process.kill()
    server.process.wait()
    assert server.exit_code == -signal.SIGKILL
    try:
        server.start()
    finally:
        connection.terminate()

    assert await run(server, "SELECT n FROM kept", postgres.OWNER) == 7


def test_a_killed_parent_takes_the_server_with_it(server: EmbeddedPostgres) -> None:
    command = [sys.executable, "-c", PARENT, str(server.data_dir), POSTGRES_SOURCE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path.cwd()) as parent:
        assert parent.stdout is not None
        watch = os.pidfd_open(int(parent.stdout.readline()))
        parent.kill()

    server.start()  # waits for the orphan, which the kernel told to shut down

    assert select.select([watch], [], [], 30)[0]  # readable once that process has ended
    os.close(watch)
    assert "received fast shutdown request" in server.log.read_text()


def test_a_pid_file_that_names_another_program_is_no_obstacle(server: EmbeddedPostgres) -> None:
    server.start()
    server.stop()
    (server.cluster / "postmaster.pid").write_text(f"{os.getpid()}\n{server.cluster}\n")

    server.start()

    assert server.is_alive()


def test_a_second_server_on_one_folder_is_refused(server: EmbeddedPostgres) -> None:
    server.start()

    with pytest.raises(ServerFailed, match="Another process runs postgresql in"):
        EmbeddedPostgres(server.data_dir).start()

    assert server.is_alive()


def test_a_server_that_cannot_start_says_what_its_log_says(servers_folder: Path) -> None:
    broken = EmbeddedPostgres(servers_folder / "broken", ("fsync=off", "max_connections=none"))

    with pytest.raises(ServerFailed, match="max_connections"):
        broken.start()
    broken.stop()

    assert not broken.cluster.exists()


def test_a_long_path_gets_a_short_socket(servers_folder: Path) -> None:
    server = EmbeddedPostgres(servers_folder / ("long-" * 20), FAST, source=POSTGRES_SOURCE)
    server.start()
    try:
        assert asyncio.run(run(server, "SELECT 1")) == 1
        short = Path(server.url().partition("host=")[2])
        assert len(str(short)) < 40
        assert stat.S_IMODE(short.stat().st_mode) == 0o700
    finally:
        server.stop()
    assert not short.exists()


def test_the_folder_lets_only_the_servers_account_pass(postgres_server: EmbeddedPostgres) -> None:
    mode = stat.S_IMODE(postgres_server.data_dir.stat().st_mode)

    assert mode == (0o710 if os.geteuid() == 0 else 0o700)
    assert stat.S_IMODE(postgres_server.cluster.stat().st_mode) == 0o700


async def test_fifty_sessions_fit(postgres_server: EmbeddedPostgres) -> None:
    sessions = await asyncio.gather(*(asyncpg.connect(postgres_server.url()) for _ in range(50)))

    await asyncio.gather(*(session.close() for session in sessions))
