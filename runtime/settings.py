"""Everything an operator can change, read once when a process starts."""

import os
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, get_type_hints

import msgspec
from msgspec import Meta

PREFIX = "PAGETOLL_"

Port = Annotated[int, Meta(ge=0, le=65_535)]
Count = Annotated[int, Meta(ge=1, le=100_000)]
Seconds = Annotated[float, Meta(gt=0, le=604_800)]
Bytes = Annotated[int, Meta(ge=1_024, le=1_073_741_824)]


class SettingsError(Exception):
    """One sentence for every wrong value, all at once."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Each field is an environment variable: PAGETOLL_ and the field's name in capitals."""

    database_url: str = ""
    """PostgreSQL for gateways; without it `pagetoll up` runs an embedded server."""
    system_database_url: str = ""
    """PostgreSQL for worker, watchdog and ledger; the default is the database URL."""
    migration_url: str = ""
    """PostgreSQL as the schema's owner; the default is the database URL."""
    redis_url: str = ""
    """Redis or Valkey; without it `pagetoll up` runs an embedded server."""
    content_url: str = ""
    """Where page bodies go: a folder, file://, s3://, gs:// or az://; default in data_dir."""
    data_dir: str = ".pagetoll"
    """The one folder that `pagetoll up` writes to."""
    host: str = "127.0.0.1"
    """The address the gateway listens on."""
    port: Port = 8000
    """The port the gateway listens on."""
    public_url: str = ""
    """The address customers use, for links in answers; default http://host:port."""
    worker_metrics_port: Port = 0
    """The port a worker serves /metrics on; 0 switches it off."""
    ledger_metrics_port: Port = 0
    """The port the ledger process serves /metrics on; 0 switches it off."""
    metrics_host: str = "127.0.0.1"
    """The address that workers and the ledger serve /metrics on."""
    secret_key: str = ""
    """Encrypts secrets that must be read again; `pagetoll up` makes one in data_dir."""
    allow_networks: str = ""
    """CIDRs, separated by commas, that crawls may reach although they are not public."""
    arq: bool = True
    """Whether arq rings workers; off, workers find jobs by Redis hints and by looking."""
    log_format: str = "auto"
    """json, console, or auto: console on a terminal, else json."""
    log_level: str = "info"
    """debug, info, warning or error."""
    pool_size: Count = 8
    """PostgreSQL connections of one process and role."""
    worker_slots: Count = 4
    """Jobs that one worker process runs at the same time."""
    job_concurrency: Count = 32
    """Requests that one job has in flight at most, before pacing."""
    extract_threads: Count = 2
    """Threads of a worker that parse and convert pages."""
    lease_seconds: Seconds = 15.0
    """How long a run may be silent before another worker takes its job over."""
    flush_pages: Count = 50
    """Finished pages that are settled in one transaction at most."""
    flush_seconds: Seconds = 0.25
    """How long a finished page waits for others before it is settled."""
    page_bytes_max: Bytes = 10_485_760
    """Decoded bytes of a page at most."""
    user_agent: str = "PagetollBot/1.0 (+https://pagetoll.example/bot)"
    """What crawls call themselves; robots.txt groups are matched by its first word."""
    watchdog_seconds: Seconds = 1.0
    """How often the gateway looks for overdue, orphaned and forgotten jobs."""
    ledger_seconds: Seconds = 5.0
    """How often the ledger process settles, expires and retains."""
    adjustment_limit: Annotated[int, Meta(ge=0, le=1_000_000_000_000_000)] = 10_000
    """Credits above which a refund or an adjustment waits for a second admin key."""
    key_cache_seconds: Annotated[float, Meta(ge=0, le=5)] = 3.0
    """How long a gateway trusts a key it has looked up; revocation also clears it at once."""
    drain_seconds: Seconds = 20.0
    """How long a stopping process may finish what it has begun."""
    loop_seconds: Seconds = 60.0
    """How long a process may be held up by one call before it ends itself, to be started anew."""

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(ip_network(text) for text in split_list(self.allow_networks))

    @property
    def system_url(self) -> str:
        return self.system_database_url or self.database_url

    @property
    def owner_url(self) -> str:
        return self.migration_url or self.database_url

    @property
    def content_place(self) -> str:
        return self.content_url or str(Path(self.data_dir).absolute() / "content")

    @property
    def base_url(self) -> str:
        return (self.public_url or f"http://{self.host}:{self.port}").rstrip("/")


ELSEWHERE = {
    "PAGETOLL_SUITES",
    "PAGETOLL_TEST_POSTGRES",
    "PAGETOLL_URL",
    "PAGETOLL_KEY",
    "PAGETOLL_ADMIN_KEY",
}
"""Variables of the tests and of the command line's client side."""


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """Reads the settings; raises SettingsError naming every wrong value and misspelt name."""
    environ = os.environ if environ is None else environ
    types = get_type_hints(Settings, include_extras=True)
    values: dict[str, object] = {}
    faults: list[str] = []
    for variable, text in environ.items():
        field = variable.removeprefix(PREFIX).lower()
        if not variable.startswith(PREFIX) or variable in ELSEWHERE:
            continue
        if field not in types:
            faults.append(f"{variable} is not a setting; see docs/settings.md.")
            continue
        try:
            values[field] = read_value(text, types[field])
        except msgspec.ValidationError as error:
            faults.append(f"{variable} is {text!r}: {error}.")
    settings = Settings(**values)  # type: ignore[arg-type] # each value was converted to its field's type
    faults += check(settings)
    if faults:
        raise SettingsError(faults)
    return settings


def read_value(text: str, kind: object) -> object:
    if kind is bool and text.lower() in {"on", "off", "yes", "no"}:
        return text.lower() in {"on", "yes"}
    return msgspec.convert(text, kind, strict=False)


def check(settings: Settings) -> list[str]:
    """What one field's type cannot say."""
    faults = [
        f"{PREFIX}{field.upper()} must be a postgresql:// URL."
        for field in ("database_url", "system_database_url", "migration_url")
        if not _has_scheme(getattr(settings, field), ("postgresql://", "postgres://"))
    ]
    if not _has_scheme(settings.redis_url, ("redis://", "rediss://", "unix://")):
        faults.append(f"{PREFIX}REDIS_URL must be a redis://, rediss:// or unix:// URL.")
    if settings.log_format not in {"auto", "json", "console"}:
        faults.append(f"{PREFIX}LOG_FORMAT must be auto, json or console.")
    if settings.log_level not in {"debug", "info", "warning", "error"}:
        faults.append(f"{PREFIX}LOG_LEVEL must be debug, info, warning or error.")
    for text in split_list(settings.allow_networks):
        try:
            ip_network(text)
        except ValueError as error:
            faults.append(f"{PREFIX}ALLOW_NETWORKS holds {text!r}, which is no network: {error}.")
    return faults


def need_servers(settings: Settings) -> None:
    """Raises SettingsError unless PostgreSQL and Redis are named, for a process of its own."""
    faults = [
        f"{PREFIX}{field.upper()} is not set; name the server, or use `pagetoll up`."
        for field in ("database_url", "redis_url")
        if not getattr(settings, field)
    ]
    if faults:
        raise SettingsError(faults)


def environment(settings: Settings) -> dict[str, str]:
    """The variables that make another process load these same settings."""
    return {
        PREFIX + field.upper(): _as_text(getattr(settings, field))
        for field in Settings.__struct_fields__
    }


def inherited_environment() -> dict[str, str]:
    """The variables of this process that are not settings, for a child process."""
    return {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}


def client_variable(name: str) -> str:
    """A variable of the command line's client side, such as PAGETOLL_URL; empty if unset."""
    return os.environ.get(name, "")


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _has_scheme(url: str, schemes: tuple[str, ...]) -> bool:
    return not url or url.startswith(schemes)


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
