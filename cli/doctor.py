"""`pagetoll doctor`: says what is wrong with this machine's setup, and how to mend it."""

import asyncio
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import rich_click as click

from cli import calls, connection, migrate, output
from cli.migrate import NoAnswer
from migrations import schema
from runtime import redis
from runtime import settings as configuration
from runtime.embedded import binaries, folders
from runtime.embedded.processes import ServerFailed
from runtime.redis import Signals
from runtime.settings import Settings, SettingsError

PYTHON_MIN = (3, 11)
READY_SECONDS = 5.0
HEAD = ("", "WHAT", "FOUND", "HOW TO MEND IT")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at; `mend` says what to do where it is not well."""

    subject: str
    well: bool
    found: str
    mend: str = ""


@click.command()
@output.as_json
def doctor(as_json: bool) -> None:
    """Say what is wrong here, and how to mend it; exit code 1 when something is."""
    findings = list(examine())
    if as_json:
        output.show_json(findings)
    else:
        lines = [(mark(one), one.subject, one.found, one.mend or None) for one in findings]
        output.show_table(HEAD, lines)
    if not all(one.well for one in findings):
        sys.exit(1)


def mark(finding: Finding) -> str:
    return "ok" if finding.well else "WRONG"


def examine() -> Iterator[Finding]:
    yield python()
    try:
        settings = configuration.load()
    except SettingsError as error:
        for fault in error.faults:
            yield Finding(
                subject="settings", well=False, found=fault, mend="Change or unset the variable."
            )
        return
    yield Finding(subject="settings", well=True, found="can be read")
    yield postgres(settings)
    if settings.database_url:
        yield tables(settings)
    yield valkey(settings)
    yield running(settings)


def python() -> Finding:
    return Finding(
        subject="python",
        well=sys.version_info >= PYTHON_MIN,
        found=platform.python_version(),
        mend="" if sys.version_info >= PYTHON_MIN else "Run it with Python 3.11 or newer.",
    )


def postgres(settings: Settings) -> Finding:
    """The servers that are named, else the program that `pagetoll up` would start."""
    if not settings.database_url:
        return embedded_postgres()
    for url in dict.fromkeys((settings.database_url, settings.system_url, settings.owner_url)):
        try:
            migrate.revision_at(url)
        except NoAnswer as error:
            return Finding(
                subject="postgresql",
                well=False,
                found=str(error),
                mend="Start the server, or mend PAGETOLL_DATABASE_URL and its companions.",
            )
    return Finding(subject="postgresql", well=True, found="answers")


def embedded_postgres() -> Finding:
    try:
        programs = binaries.find_postgres("any", folders.server_account())
    except ServerFailed as error:
        return Finding(subject="postgresql", well=False, found="none", mend=str(error))
    return Finding(subject="postgresql", well=True, found=f"embedded, version {programs.version}")


def tables(settings: Settings) -> Finding:
    try:
        known = migrate.revision_at(settings.owner_url)
    except NoAnswer as error:
        return Finding(subject="schema", well=False, found=str(error), mend="See postgresql above.")
    head = schema.head()
    well = known is not None and known >= head
    return Finding(
        subject="schema",
        well=well,
        found=f"at {known or 'nothing'}, this code needs {head}",
        mend="" if well else "Run `pagetoll migrate up`.",
    )


def valkey(settings: Settings) -> Finding:
    """The server that is named, else the program that `pagetoll up` would start."""
    if not settings.redis_url:
        try:
            program = binaries.find_redis()
        except ServerFailed as error:
            return Finding(subject="redis", well=False, found="none", mend=str(error))
        return Finding(subject="redis", well=True, found=f"embedded, {program.name}")
    reason = asyncio.run(redis_fault(settings.redis_url))
    return Finding(
        subject="redis",
        well=not reason,
        found=reason or "answers",
        mend="Start the server, or mend PAGETOLL_REDIS_URL." if reason else "",
    )


async def redis_fault(url: str) -> str:
    """Why Redis cannot be used; empty when it answers."""
    signals = Signals(url)
    try:
        await signals.client.ping()
    except redis.LOST as error:
        return calls.reason_of(error)
    finally:
        await signals.close()
    return ""


def running(settings: Settings) -> Finding:
    """The gateway, where one says that it runs; that none does is nothing wrong."""
    announced = connection.read(Path(settings.data_dir))
    url = configuration.client_variable(connection.URL_VARIABLE) or (announced and announced.url)
    if not url:
        return Finding(
            subject="gateway", well=True, found="none announces itself: `pagetoll up` starts one"
        )
    try:
        answer = httpx.get(f"{url.rstrip('/')}/readyz", timeout=READY_SECONDS, trust_env=False)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Finding(
            subject="gateway",
            well=False,
            found=f"{url} does not answer: {calls.reason_of(error)}",
            mend="Start it with `pagetoll up`, or mend PAGETOLL_URL.",
        )
    if answer.is_success:
        return Finding(subject="gateway", well=True, found=f"{url} is ready")
    failure = calls.failure_of(answer)
    return Finding(
        subject="gateway",
        well=False,
        found=f"{url}: {failure}",
        mend="Look after what it names; its log says more.",
    )
