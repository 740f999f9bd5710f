"""A Valkey server of our own, which speaks Redis, on a unix socket in the data folder."""

import contextlib
import os
import socket
import time
from pathlib import Path

from runtime import clock
from runtime.embedded import binaries, folders, processes
from runtime.embedded.binaries import PLAIN_ENVIRONMENT
from runtime.embedded.processes import Child, ServerFailed

SOCKET = "valkey.sock"
FLAGS = (
    *("--port", "0"),
    *("--unixsocketperm", "700"),
    *("--appendonly", "yes"),
    *("--appendfsync", "everysec"),
    *("--save", ""),
    *("--maxmemory-policy", "noeviction"),
    *("--daemonize", "no"),
)
START_SECONDS = 30.0
STOP_SECONDS = 10.0
LOOK_SECONDS = 0.01
ANSWER_SECONDS = 1.0


class EmbeddedRedis(Child):
    """One server with its files in `data_dir`/redis; what is under a second old may be lost."""

    def __init__(self, data_dir: Path) -> None:
        super().__init__("redis", stop_seconds=STOP_SECONDS)
        self.data_dir = data_dir.absolute()
        self.log = self.data_dir / "logs" / "redis.log"
        self._folder = self.data_dir / "redis"
        self._sockets = self._folder

    @property
    def url(self) -> str:
        """A URL that redis-py and arq read; known once the server was started."""
        return f"unix://{self._socket}"

    @property
    def _socket(self) -> Path:
        return self._sockets / SOCKET

    def start(self) -> None:
        """Blocks until the server answers. Raises ServerFailed with the end of its log."""
        folders.make_data_folder(self.data_dir)
        self.take_lock(self.data_dir / "redis.lock")
        folders.make_own_folder(self._folder, None)
        self._sockets = folders.socket_folder(self._folder, SOCKET, None)
        self.held.callback(folders.drop_socket_folder, self._sockets, self._folder)
        self._socket.unlink(missing_ok=True)
        program = binaries.find_redis()
        with processes.open_log(self.log) as log:
            start = log.seek(0, os.SEEK_END)
            self.process = processes.spawn(
                [program, *FLAGS, "--unixsocket", self._socket, "--dir", self._folder],
                environment=PLAIN_ENVIRONMENT,
                output=log,
                folder=self._folder,
            )
        if not self._becomes_ready():
            processes.stop(self.process, seconds=STOP_SECONDS)
            raise ServerFailed(f"Redis did not start: {processes.log_tail(self.log, start)}")

    def _becomes_ready(self) -> bool:
        deadline = clock.monotonic() + START_SECONDS
        while self.is_alive() and clock.monotonic() < deadline:
            with contextlib.suppress(OSError):
                if self._ping().startswith(b"+PONG"):
                    return True
            time.sleep(LOOK_SECONDS)
        return False

    def _ping(self) -> bytes:
        """Asks the server; while it still reads its file it answers -LOADING."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(ANSWER_SECONDS)
            connection.connect(str(self._socket))
            connection.sendall(b"PING\r\n")
            return connection.recv(16)
