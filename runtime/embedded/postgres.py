"""A PostgreSQL server of our own: made on first use, and gone when we are."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from runtime import clock
from runtime.embedded import binaries, folders, processes
from runtime.embedded.binaries import PLAIN_ENVIRONMENT, Programs, Source
from runtime.embedded.processes import Child, ServerFailed

SUPERUSER = "postgres"
DATABASE = "pagetoll"
OWNER = "pagetoll_owner"
APP = "pagetoll_app"
SYSTEM = "pagetoll_system"

SOCKET = ".s.PGSQL.5432"
OPTIONS = (
    "listen_addresses=",
    "port=5432",
    "timezone=UTC",
    "max_connections=100",
    "shared_buffers=128MB",
    "synchronous_commit=on",
    "jit=off",
    "log_line_prefix=%m [%p] ",
)
FIRST_STATEMENTS = (
    f"CREATE ROLE {OWNER} LOGIN NOSUPERUSER CREATEROLE",
    f"CREATE ROLE {APP} LOGIN NOSUPERUSER NOBYPASSRLS",
    f"CREATE ROLE {SYSTEM} LOGIN NOSUPERUSER NOBYPASSRLS",
    f"GRANT {APP}, {SYSTEM} TO {OWNER} WITH ADMIN OPTION",
    f"CREATE DATABASE {DATABASE} OWNER {OWNER}",
)
"""Given to a new cluster before it can be reached."""

BUILTIN_LOCALES_SINCE = 17
INITDB_SECONDS = 120.0
START_SECONDS = 60.0
STOP_SECONDS = 30.0
PREVIOUS_SECONDS = 20.0
LOOK_SECONDS = 0.01
READY_LINE = 7
"""postmaster.pid has the server's state on its eighth line once it serves."""


class EmbeddedPostgres(Child):
    """One server on a unix socket, without TCP, with its files in `data_dir`/postgres.

    `options` are server settings such as "fsync=off". Who can enter the socket's folder
    may connect as any role: the folder's mode is the access control.
    """

    stop_signal = signal.SIGINT  # a fast shutdown: ends sessions, writes everything out

    def __init__(
        self, data_dir: Path, options: Sequence[str] = (), *, source: Source = "any"
    ) -> None:
        super().__init__("postgresql", stop_seconds=STOP_SECONDS)
        self.data_dir = data_dir.absolute()
        self.log = self.data_dir / "logs" / "postgresql.log"
        self.cluster = self.data_dir / "postgres"
        self._sockets = self.cluster
        self._options = (*OPTIONS, *options)
        self._source = source
        self._account = folders.server_account()

    def url(self, user: str = SUPERUSER, database: str = DATABASE) -> str:
        """A URL that asyncpg and libpq read; known once the server was started."""
        return f"postgresql://{user}@/{database}?host={quote(str(self._sockets))}"

    def start(self) -> None:
        """Blocks until the server takes connections, making it first where there is none.

        Raises ServerFailed with the end of the server's log, or when another process
        has the folder.
        """
        folders.make_data_folder(self.data_dir)
        self.take_lock(self.data_dir / "postgres.lock")
        programs = binaries.find_postgres(self._source, self._account)
        self.cluster = folders.cluster_folder(self.data_dir, self._account)
        if not self.cluster.exists():
            self._create(programs)
        self._sockets = folders.socket_folder(self.cluster, SOCKET, self._account)
        self.held.callback(folders.drop_socket_folder, self._sockets, self.cluster)
        self._let_previous_go()
        self._launch(programs)

    def _create(self, programs: Programs) -> None:
        """Makes the cluster aside and renames it: it is there whole or not at all."""
        new = self.cluster.with_name("postgres.new")
        shutil.rmtree(new, ignore_errors=True)
        folders.make_own_folder(new, self._account)
        self._run([programs.folder / "initdb", "-D", new, *self._initdb_flags(programs)])
        flags = ["--single", *self._flags(), "-c", "exit_on_error=on"]
        self._run(
            [programs.folder / "postgres", *flags, "-D", new, SUPERUSER],
            lines="\n".join(FIRST_STATEMENTS),
        )
        new.rename(self.cluster)

    def _initdb_flags(self, programs: Programs) -> list[str]:
        flags = ["-U", SUPERUSER, "--auth=trust", "-E", "UTF8", "--data-checksums"]
        flags.append("--no-instructions")
        if programs.version >= BUILTIN_LOCALES_SINCE:
            flags += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
        else:
            flags.append("--locale=C.UTF-8")
        if "fsync=off" in self._options:
            flags.append("--no-sync")
        return flags

    def _run(self, command: Sequence[str | Path], *, lines: str = "") -> None:
        done = subprocess.run(  # noqa: S603 # a path of our own
            [str(part) for part in command],
            input=lines.encode(),
            env=PLAIN_ENVIRONMENT,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INITDB_SECONDS,
            check=False,
            **processes.identity(self._account),
        )
        if done.returncode:
            said = done.stdout.decode(errors="replace").strip()
            raise ServerFailed(f"PostgreSQL's cluster could not be made: {said}")

    def _flags(self) -> list[str]:
        return [part for option in self._options for part in ("-c", option)]

    def _recorded(self) -> list[str]:
        try:
            return (self.cluster / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _let_previous_go(self) -> None:
        """Waits for a server whose parent was killed; it is shutting down by itself.

        PostgreSQL handles a dead process's pid file. One whose pid was given to another
        program since then would stop it, so that file is removed.
        """
        deadline = clock.monotonic() + PREVIOUS_SECONDS
        while lines := self._recorded():
            pid = int(lines[0])
            if not processes.is_alive(pid):
                return
            if not self._is_ours(pid):
                (self.cluster / "postmaster.pid").unlink(missing_ok=True)
                return
            if clock.monotonic() > deadline:
                raise ServerFailed(f"PostgreSQL (pid {pid}) already runs in {self.cluster}.")
            time.sleep(LOOK_SECONDS)

    def _is_ours(self, pid: int) -> bool:
        if sys.platform != "linux":
            return True
        try:
            return Path(f"/proc/{pid}/cwd").readlink() == self.cluster.resolve()
        except OSError:
            return False

    def _launch(self, programs: Programs) -> None:
        program = programs.folder / "postgres"
        deadline = clock.monotonic() + START_SECONDS
        while True:
            with processes.open_log(self.log) as log:
                start = log.seek(0, os.SEEK_END)
                self.process = processes.spawn(
                    [program, "-D", self.cluster, "-k", self._sockets, *self._flags()],
                    environment=PLAIN_ENVIRONMENT,
                    death_signal=signal.SIGINT,
                    output=log,
                    account=self._account,
                    folder=Path("/"),
                )
            if self._becomes_ready(deadline):
                return
            said = processes.log_tail(self.log, start)
            # the sessions of a server that was killed need a moment to notice
            if "is still in use" not in said or clock.monotonic() > deadline:
                processes.stop(self.process, signum=signal.SIGQUIT)
                raise ServerFailed(f"PostgreSQL did not start in {self.cluster}: {said}")

    def _becomes_ready(self, deadline: float) -> bool:
        while self.is_alive() and clock.monotonic() < deadline:
            lines = self._recorded()  # at first perhaps those of a server that was killed
            state = lines[READY_LINE].strip() if len(lines) > READY_LINE else ""
            if state == "ready" and int(lines[0]) == self.pid:
                return True
            time.sleep(LOOK_SECONDS)
        return False
