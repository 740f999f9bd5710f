"""`pagetoll demo`: runs everything, crawls a bundled site and shows what it cost."""

import contextlib
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import rich_click as click

from cli import bills, up
from cli.bills import Job
from cli.supervisor import Process
from cli.up import System
from runtime import settings as configuration
from runtime.settings import Settings

SITE = Path(__file__).resolve().parent.parent / "tests" / "support" / "benchsite.py"
LOOPBACK = "127.0.0.0/8"
SITE_STOP_SECONDS = 2.0
SITE_LOOKS = 200
LOOK_SECONDS = 0.25
CALL_SECONDS = 10.0
SHOWN_PAGES = 5
ADDRESSES_A_PAGE = 2
"""The site has redirects, errors and duplicates beside its pages; all of them shall fit."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    url: str
    credits: int
    reason: str | None = None


class Pages(msgspec.Struct, frozen=True, kw_only=True):
    items: list[Page]


@click.command()
@click.option(
    "--pages", type=click.IntRange(1, 1_000), default=60, show_default=True, help="The site's size."
)
@click.option("--once", is_flag=True, help="Stop after the crawl; exit code 1 unless it is right.")
def demo(pages: int, once: bool) -> None:
    """Run everything and crawl a small site on this machine."""
    with up.reported(), up.running(with_loopback(up.load_settings())) as system:
        site = f"{start_site(system, pages=pages)}/"
        job = crawl(system, site, pages=pages)
        if once:
            sys.exit(0 if job is not None and job.is_right else 1)
        click.echo(up.greeting(system, site=site))
        system.supervisor.run()
    click.echo("Stopped.", err=True)


def with_loopback(settings: Settings) -> Settings:
    """Settings under which crawls may reach the demo's own site."""
    networks = [*configuration.split_list(settings.allow_networks), LOOPBACK]
    return msgspec.structs.replace(settings, allow_networks=",".join(networks))


def crawl(system: System, site: str, *, pages: int) -> Job | None:
    """Crawls the site with the ready key and prints the bill; None when told to stop."""
    most = pages * ADDRESSES_A_PAGE
    click.echo(f"Crawling {site}, at most {most} pages ...")
    with connected(system) as client:
        answer = client.post("/v1/crawls", json={"url": site, "max_pages": most})
        if answer.is_error:
            raise up.StartFailed(f"The crawl was refused: {answer.text}")
        job = follow(system, client, msgspec.json.decode(answer.content, type=Job))
        if job is not None:
            show_pages(client, job)
            click.echo(bills.bill(job))
        return job


@contextlib.contextmanager
def connected(system: System) -> Iterator[httpx.Client]:
    """A client with the ready key. What goes wrong on the way becomes a StartFailed."""
    welcome = system.welcome
    headers = {"Authorization": f"Bearer {welcome.tenant_key}"}
    try:
        with httpx.Client(
            base_url=welcome.url, headers=headers, timeout=CALL_SECONDS, trust_env=False
        ) as client:
            yield client
    except httpx.HTTPError as error:
        raise up.StartFailed(f"The gateway did not answer as it should: {error}") from error


def start_site(system: System, *, pages: int) -> str:
    """Serves the bundled site on a free port of this machine until the system stops."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    site = Process(
        "site",
        [sys.executable, SITE, "serve", "--pages", str(pages), "--base", url],
        environment=configuration.inherited_environment(),
        stop_seconds=SITE_STOP_SECONDS,
    )
    system.supervisor.start(site)
    for _ in range(SITE_LOOKS):
        system.supervisor.tend(up.LOOK_SECONDS)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return url
    raise up.StartFailed("The demo's site did not start.")


def follow(system: System, client: httpx.Client, job: Job) -> Job | None:
    """Prints each step of a job until it is final and settled; None when told to stop."""
    shown = ""
    while not system.supervisor.stop_asked:
        line = describe(job)
        if line != shown:
            click.echo(line)
            shown = line
        if job.is_settled:
            return job
        system.supervisor.tend(LOOK_SECONDS)
        answer = client.get(f"/v1/jobs/{job.job_id}").raise_for_status()
        job = msgspec.json.decode(answer.content, type=Job)
    return None


def describe(job: Job) -> str:
    return f"  {job.state:<10} {bills.describe(job)}"


def show_pages(client: httpx.Client, job: Job) -> None:
    parameters = {"limit": str(SHOWN_PAGES), "include_content": "false"}
    answer = client.get(f"/v1/jobs/{job.job_id}/results", params=parameters).raise_for_status()
    click.echo("\nThe first pages:")
    for page in msgspec.json.decode(answer.content, type=Pages).items:
        click.echo(f"  {page.reason or page.status:<12} {page.credits} credits  {page.url}")
