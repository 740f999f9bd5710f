"""The embedded Redis keeps what it was told and leaves nothing behind."""

import os
import select
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from runtime.embedded.processes import ServerFailed
from runtime.embedded.redis import EmbeddedRedis

PARENT = """
import sys, time
from pathlib import Path
from runtime.embedded.redis import EmbeddedRedis
server = EmbeddedRedis(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def server(servers_folder: Path, request: pytest.FixtureRequest) -> Iterator[EmbeddedRedis]:
    server = EmbeddedRedis(servers_folder / request.node.name)
    yield server
    server.stop()


def remember(server: EmbeddedRedis, value: str) -> None:
    with redis.Redis.from_url(server.url) as client:
        client.set("key", value)


def recall(server: EmbeddedRedis) -> object:
    with redis.Redis.from_url(server.url) as client:
        return client.get("key")


def test_it_listens_on_its_socket_alone(redis_server: EmbeddedRedis) -> None:
    with redis.Redis.from_url(redis_server.url) as client:
        assert client.config_get("port") == {"port": "0"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
    socket = Path(redis_server.url.removeprefix("unix://"))
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700


def test_a_stopped_server_starts_again_with_its_data(server: EmbeddedRedis) -> None:
    server.start()
    remember(server, "seven")

    server.stop()
    assert server.exit_code == 0
    server.start()

    assert recall(server) == b"seven"


def test_a_killed_server_starts_again(server: EmbeddedRedis) -> None:
    server.start()
    remember(server, "seven")

    assert server.process is not None
    server.process.kill()
    server.process.wait()
    assert server.exit_code == -signal.SIGKILL
    server.start()

    remember(server, "eight")
    assert recall(server) == b"eight"


def test_a_killed_parent_takes_the_server_with_it(server: EmbeddedRedis) -> None:
    command = [sys.executable, "-c", PARENT, str(server.data_dir)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        watch = os.pidfd_open(pid)
        parent.kill()

    assert select.select([watch], [], [], 30)[0]  # readable once that process has ended
    os.close(watch)


def test_a_second_server_on_one_folder_is_refused(server: EmbeddedRedis) -> None:
    server.start()

    with pytest.raises(ServerFailed, match="Another process runs redis in"):
        EmbeddedRedis(server.data_dir).start()


def test_a_server_that_cannot_start_says_what_its_log_says(server: EmbeddedRedis) -> None:
    server.start()
    server.stop()
    folder = server.data_dir / "redis" / "appendonlydir"
    manifest = next(folder.glob("*.manifest"))
    manifest.write_text("no manifest\n")

    with pytest.raises(ServerFailed, match="manifest"):
        server.start()
