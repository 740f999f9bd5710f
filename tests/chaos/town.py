"""A whole system out of real processes, with a wire at every place where one can tear."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Self
from uuid import UUID

import httpx
import msgspec

from cli import welcome
from runtime import clock, database, settings
from runtime.database import Database
from runtime.embedded.postgres import APP, DATABASE, OWNER, SYSTEM, EmbeddedPostgres
from runtime.embedded.processes import ServerFailed
from runtime.embedded.redis import EmbeddedRedis
from runtime.settings import Settings
from tests.support import builders
from tests.support.processes import ROOT, OwnProcess, children, free_port
from tests.support.whole import BenchSite
from tests.support.wires import Wires

PAGES = 60
CREDITS = 3_000
START_SECONDS = 60.0
LOOK_SECONDS = 0.02
RESTART_SECONDS = 0.2
"""How long what cannot be started, or ends at once, is left alone."""
SKEWED = ROOT / "tests" / "chaos" / "skewed"
SECRET_KEY = "k" * 43
NO_SYNC = ("fsync=off",)
"""Processes are killed here, machines are not: what a server has written stays written."""


class Kept:
    """A process that is started again whenever it ends, and whose wall clock can be set."""

    def __init__(self, module: str, name: str, chosen: Settings, folder: Path) -> None:
        self.name = name
        self.skew_file = folder / f"{name}.clock"
        self.skew(0)
        self._own = OwnProcess(module, chosen, log=folder / f"{name}.log")
        self._started_at = -RESTART_SECONDS

    @property
    def log(self) -> str:
        return self._own.log

    def skew(self, seconds: int) -> None:
        """From now on its clock is wrong by so much."""
        new = self.skew_file.with_suffix(".new")
        new.write_text(str(seconds), encoding="ascii")
        new.replace(self.skew_file)

    def send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, AssertionError):
            os.kill(self._own.process.pid, number)

    def send_to_all(self, number: signal.Signals) -> None:
        """To its children too: the gateway's child is the one that serves."""
        self.send_to_children(number)
        self.send(number)

    def send_to_children(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, AssertionError):
            for child in children(self._own.process.pid):
                os.kill(child, number)

    def is_alive(self) -> bool:
        with contextlib.suppress(AssertionError):
            return self._own.process.poll() is None
        return False

    def restart(self) -> None:
        """Ends it as a deploy does, and waits until it was started again."""
        pid = self._own.process.pid
        self.send(signal.SIGTERM)
        deadline = clock.monotonic() + START_SECONDS
        while self._own.process.pid == pid and clock.monotonic() < deadline:
            time.sleep(LOOK_SECONDS)

    def tend(self) -> None:
        """Starts it where it is not there; one that did not live long waits a moment."""
        now = clock.monotonic()
        if self.is_alive() or now < self._started_at + RESTART_SECONDS:
            return
        self._started_at = now
        self._own.start(
            variables={
                "PYTHONPATH": os.pathsep.join([str(SKEWED), str(ROOT)]),
                "CHAOS_CLOCK": str(self.skew_file),
            }
        )

    def stop(self) -> None:
        self.send_to_all(signal.SIGCONT)
        with contextlib.suppress(AssertionError):
            self._own.stop()


class Town:
    """PostgreSQL, Redis, a site, two gateways, two workers and the ledger; use with `with`."""

    def __init__(self, folder: Path, *, lease_seconds: float) -> None:
        self.folder = folder
        self.lease_seconds = lease_seconds
        self.content = folder / "content"
        self.postgres = EmbeddedPostgres(folder / "servers", NO_SYNC)
        self.redis = EmbeddedRedis(folder / "servers")
        self.processes: dict[str, list[Kept]] = {}
        self.jobs: list[UUID] = []
        """Ids of all jobs that anybody was promised."""
        self._open = contextlib.ExitStack()
        self._ending = threading.Event()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            self._start(opening)
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def all(self) -> list[Kept]:
        return [one for kind in self.processes.values() for one in kind]

    def a_customer(self) -> tuple[str, str]:
        """A new tenant's id and key; it has credits for a schedule's jobs."""
        return asyncio.run(_a_customer(self.postgres.url(SYSTEM, DATABASE)))

    @property
    def admin_key(self) -> str:
        return self._welcome.admin_key

    def _start(self, opening: contextlib.ExitStack) -> None:
        (self.folder / "logs").mkdir()
        for server in (self.postgres, self.redis):
            opening.callback(server.stop)
            server.start()
        self.wires = opening.enter_context(Wires().laid())
        sockets = Path(self.postgres.url().partition("host=")[2])
        redis_socket = Path(self.redis.url.removeprefix("unix://"))
        self.gateway_postgres = self.wires.lay("gateway to PostgreSQL", sockets / ".s.PGSQL.5432")
        self.worker_postgres = self.wires.lay("worker to PostgreSQL", sockets / ".s.PGSQL.5432")
        self.to_redis = self.wires.lay("all to Redis", redis_socket)
        site_port = free_port()
        self.to_site = self.wires.lay("worker to site", site_port)
        self.site = opening.enter_context(
            BenchSite(self.folder, self.to_site.port, PAGES, "plain", listen=site_port).serving()
        )
        self._migrate()
        self._plan_processes()
        self._welcome = welcome.prepare(self._settings(), None)
        keeping = threading.Thread(target=self._keep, name="keeper")
        keeping.start()
        opening.callback(keeping.join)
        opening.callback(self._ending.set)
        self._wait_until_ready()

    def _settings(self) -> Settings:
        return Settings(
            system_database_url=self.postgres.url(SYSTEM, DATABASE),
            migration_url=self.postgres.url(OWNER, DATABASE),
            database_url=self.postgres.url(APP, DATABASE),
            redis_url=self.redis.url,
            data_dir=str(self.folder),
            content_url=str(self.content),
            secret_key=SECRET_KEY,
            allow_networks="127.0.0.0/8",
            log_format="json",
            pool_size=4,
            lease_seconds=self.lease_seconds,
        )

    def _migrate(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "migrations", "upgrade"],
            cwd=ROOT,
            env={**settings.inherited_environment(), **settings.environment(self._settings())},
            check=True,
            capture_output=True,
        )

    def _plan_processes(self) -> None:
        through = {"redis_url": f"redis://127.0.0.1:{self.to_redis.port}"}
        names = {"gateway": ["gateway-1", "gateway-2"], "workers": ["worker-1", "worker-2"]}
        for module, listed in ({**names, "accounting": ["ledger"]}).items():
            wire = self.gateway_postgres if module == "gateway" else self.worker_postgres
            self.processes[module] = []
            for name in listed:
                port = free_port()
                chosen = settings_with(self._settings(), wire.port, port=port, **through)
                self.processes[module].append(Kept(module, name, chosen, self.folder / "logs"))
                if module == "gateway":
                    self.wires.lay(name, port)
        self.gateways = self.wires.all[-2:]

    def _keep(self) -> None:
        """Starts again what has ended, servers too, until the town closes."""
        while not self._ending.wait(LOOK_SECONDS):
            for server in (self.postgres, self.redis):
                _tend(server)
            for process in self.all:
                process.tend()
        for process in reversed(self.all):
            process.stop()

    def _wait_until_ready(self) -> None:
        deadline = clock.monotonic() + START_SECONDS
        for wire in self.gateways:
            while not _is_ready(wire.port):
                assert clock.monotonic() < deadline, [one.log[-2000:] for one in self.all]
                time.sleep(LOOK_SECONDS)


def settings_with(chosen: Settings, postgres_port: int, **changes: object) -> Settings:
    """The same settings, with PostgreSQL behind a port of this machine."""
    urls = {
        "database_url": f"postgresql://{APP}@127.0.0.1:{postgres_port}/{DATABASE}",
        "system_database_url": f"postgresql://{SYSTEM}@127.0.0.1:{postgres_port}/{DATABASE}",
        "migration_url": "",
    }
    return msgspec.structs.replace(chosen, **(urls | changes))


def _tend(server: EmbeddedPostgres | EmbeddedRedis) -> None:
    if not server.is_alive():
        with contextlib.suppress(ServerFailed, OSError):
            server.start()


def _is_ready(port: int) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False).status_code == 200
    return False


async def _a_customer(url: str) -> tuple[str, str]:
    pool = Database(url, role=database.SYSTEM, size=1)
    await pool.open()
    try:
        tenant = await builders.a_tenant(pool, credits=CREDITS)
        return str(tenant.tenant_id), await builders.a_key(pool, tenant.tenant_id)
    finally:
        await pool.close()
