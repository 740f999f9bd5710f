"""`pagetoll up`: servers, migrations, gateway, workers and ledger on this machine."""

import contextlib
import errno
import http.client
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import rich_click as click

from cli import supervisor as supervision
from cli import welcome as first_tenant
from cli.supervisor import Process, Supervisor
from cli.welcome import Welcome
from runtime import clock, ids
from runtime import settings as configuration
from runtime.embedded import folders, processes
from runtime.embedded.postgres import APP, DATABASE, OWNER, SYSTEM, EmbeddedPostgres
from runtime.embedded.processes import ServerFailed
from runtime.embedded.redis import EmbeddedRedis
from runtime.settings import Settings, SettingsError

ROOT = Path(__file__).resolve().parent.parent
CONNECTION = "connection.json"
"""How tools and tests find a running `pagetoll up`: it is there while the gateway serves."""
KEYS = "keys.json"
SECRET_KEY_LENGTH = 43
READY_SECONDS = 60.0
LOOK_SECONDS = 0.05
ANSWER_SECONDS = 2.0
MIGRATION_SECONDS = 3_600.0
DRAIN_MARGIN_SECONDS = 2.0
"""What a child gets beyond its own drain time before it is killed."""
ANY_HOST = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 # only read here
"""Where to call a gateway that listens on every address."""


class StartFailed(Exception):
    """Why `pagetoll up` cannot run, in one sentence."""


class StopAsked(Exception):
    """SIGINT or SIGTERM came before everything ran."""


class System(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that runs, and how to talk to it."""

    settings: Settings
    supervisor: Supervisor
    welcome: Welcome


@click.command()
@click.option(
    "--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Worker processes."
)
def up(workers: int) -> None:
    """Run everything on this machine until Ctrl-C."""
    with reported(), running(load_settings(), workers=workers) as system:
        click.echo(greeting(system))
        system.supervisor.run()
    click.echo("Stopped.", err=True)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Turns what keeps a system from running into one sentence and exit code 1."""
    try:
        yield
    except StopAsked:
        return
    except (StartFailed, ServerFailed) as error:
        supervision.complain(str(error))
        sys.exit(1)


def load_settings() -> Settings:
    """The environment's settings; wrong ones are printed, one sentence each, with exit code 2."""
    try:
        return configuration.load()
    except SettingsError as error:
        for fault in error.faults:
            click.echo(fault, err=True)
        sys.exit(2)


@contextlib.contextmanager
def running(settings: Settings, *, workers: int = 1) -> Iterator[System]:
    """Starts everything, waits until it serves, and stops it in order on leaving.

    Raises StartFailed, ServerFailed or StopAsked; what had been started is stopped then.
    """
    os.umask(0o077)
    data_dir = Path(settings.data_dir).absolute()
    folders.make_data_folder(data_dir)
    with alone(data_dir), Supervisor() as supervisor:
        settings = with_port(with_secret_key(settings, data_dir))
        settings = start_servers(settings, data_dir, supervisor)
        migrate(settings, supervisor)
        welcome = first_tenant.prepare(settings, read_keys(data_dir))
        kept = msgspec.structs.replace(welcome, replaced_keys=False)
        keep(data_dir / KEYS, msgspec.json.encode(kept))
        start_processes(settings, supervisor, workers=workers)
        wait_until_ready(settings, supervisor)
        with announced(data_dir / CONNECTION, kept):
            yield System(settings=settings, supervisor=supervisor, welcome=welcome)


@contextlib.contextmanager
def alone(data_dir: Path) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(processes.locked(data_dir / "up.lock"))
        except BlockingIOError as error:
            raise StartFailed(
                f"Another `pagetoll up` uses {data_dir}: stop it,"
                " or choose another folder with PAGETOLL_DATA_DIR."
            ) from error
        (data_dir / CONNECTION).unlink(missing_ok=True)
        yield


@contextlib.contextmanager
def announced(path: Path, welcome: Welcome) -> Iterator[None]:
    keep(path, msgspec.json.encode(welcome))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def with_port(settings: Settings) -> Settings:
    """Settings with a port that can be listened on; 0 becomes a free one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        with socket.create_server((settings.host, settings.port), family=family) as server:
            port: int = server.getsockname()[1]
    except OSError as error:
        reason = (
            "is in use" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        )
        raise StartFailed(
            f"Port {settings.port} of {settings.host} {reason}:"
            " choose another with PAGETOLL_PORT=8001 (0 takes any free one)."
        ) from error
    return msgspec.structs.replace(settings, port=port)


def with_secret_key(settings: Settings, data_dir: Path) -> Settings:
    """Settings with absolute folders and a secret key, made once and kept in data_dir."""
    path = data_dir / "secret_key"
    if not settings.secret_key and not path.exists():
        keep(path, ids.random_text(SECRET_KEY_LENGTH).encode())
    secret_key = settings.secret_key or path.read_text().strip()
    return msgspec.structs.replace(settings, secret_key=secret_key, data_dir=str(data_dir))


def start_servers(settings: Settings, data_dir: Path, supervisor: Supervisor) -> Settings:
    """Starts the servers that no URL names; settings that name them all."""
    if not settings.database_url:
        postgres = EmbeddedPostgres(data_dir)
        supervisor.start(postgres)
        if not postgres.cluster.is_relative_to(data_dir):
            click.echo(f"PostgreSQL's account cannot enter {data_dir}: data in {postgres.cluster}.")
        settings = msgspec.structs.replace(
            settings,
            database_url=postgres.url(APP, DATABASE),
            system_database_url=postgres.url(SYSTEM, DATABASE),
            migration_url=postgres.url(OWNER, DATABASE),
        )
    if not settings.redis_url:
        redis = EmbeddedRedis(data_dir)
        supervisor.start(redis)
        settings = msgspec.structs.replace(settings, redis_url=redis.url)
    return settings


def migrate(settings: Settings, supervisor: Supervisor) -> None:
    if supervisor.stop_asked:
        raise StopAsked
    migrations = process("migrations", settings, "upgrade")
    migrations.start()
    try:
        deadline = clock.monotonic() + MIGRATION_SECONDS
        while migrations.is_alive() and clock.monotonic() < deadline:
            supervisor.wait()
            if supervisor.stop_asked:
                raise StopAsked
    finally:
        migrations.stop()
    if migrations.exit_code:
        raise StartFailed("The migrations did not finish; what they said stands above.")


def start_processes(settings: Settings, supervisor: Supervisor, *, workers: int) -> None:
    """Starts the ledger first and the gateway last, so that the gateway is stopped first."""
    supervisor.start(process("accounting", settings, name="ledger"))
    for number in range(workers):
        port = settings.worker_metrics_port and settings.worker_metrics_port + number
        own = msgspec.structs.replace(settings, worker_metrics_port=port)
        name = f"worker-{number + 1}" if workers > 1 else "worker"
        supervisor.start(process("workers", own, name=name))
    supervisor.start(process("gateway", settings, name="gateway"))


def process(module: str, settings: Settings, *arguments: str, name: str = "") -> Process:
    """A Python process of ours that loads exactly these settings."""
    environment = configuration.inherited_environment()
    paths = [str(ROOT), *filter(None, [environment.get("PYTHONPATH")])]
    return Process(
        name or module,
        [sys.executable, "-m", module, *arguments],
        environment={
            **environment,
            **configuration.environment(settings),
            "PYTHONPATH": os.pathsep.join(paths),
        },
        stop_seconds=settings.drain_seconds + DRAIN_MARGIN_SECONDS,
    )


def wait_until_ready(settings: Settings, supervisor: Supervisor) -> None:
    """Waits for the gateway's /readyz; a child that ends meanwhile is not started again."""
    deadline = clock.monotonic() + READY_SECONDS
    while not answers_ready(settings):
        if supervisor.stop_asked:
            raise StopAsked
        for service in supervisor.dead():
            raise StartFailed(f"{service.name} {supervision.end_of(service)} while starting.")
        if clock.monotonic() > deadline:
            raise StartFailed(f"The gateway was not ready within {READY_SECONDS:g} s.")
        supervisor.wait(LOOK_SECONDS)


def answers_ready(settings: Settings) -> bool:
    host = ANY_HOST.get(settings.host, settings.host)
    connection = http.client.HTTPConnection(host, settings.port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def read_keys(data_dir: Path) -> Welcome | None:
    """The keys that an earlier `up` gave out here; they stay good over restarts."""
    try:
        return msgspec.json.decode((data_dir / KEYS).read_bytes(), type=Welcome)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def keep(path: Path, content: bytes) -> None:
    """Writes a file that only we can read, whole or not at all."""
    new = path.with_name(path.name + ".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    new.replace(path)


def greeting(system: System, *, site: str = "https://example.com/") -> str:
    """What a newcomer needs next: the address, the key, and a call to paste."""
    url, key = system.welcome.url, system.welcome.tenant_key
    replaced = "\nThe keys of the last start are not good any more: these are new.\n"
    return f"""{replaced if system.welcome.replaced_keys else ""}
Pagetoll serves {url}  (OpenAPI: {url}/schema)
Your key:   {key}
Admin key:  {system.welcome.admin_key}
Data:       {system.settings.data_dir}

Crawls reach public addresses only; PAGETOLL_ALLOW_NETWORKS=127.0.0.0/8 lets them through to sites
of this machine. `make demo` crawls a site that comes with Pagetoll.

Try it:
  curl -s {url}/v1/crawls -H 'Authorization: Bearer {key}' \\
    -H 'Content-Type: application/json' -d '{{"url": "{site}", "max_pages": 5}}'

Ctrl-C stops everything.
"""
