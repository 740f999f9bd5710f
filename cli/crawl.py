"""`pagetoll crawl`: submits a crawl, watches it, shows its bill and keeps its pages."""

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, get_args

import httpx
import msgspec
import rich_click as click

from cli import bills, calls, jobs, output, results, watching
from cli.arguments import FILE
from cli.bills import Job
from cli.calls import Api, CallFailed, Row
from cli.watching import Interrupts
from jobs.vocabulary import Format
from runtime import ids

EXIT_CODES = {"succeeded": 0, "failed": 3, "cancelled": 4}
INTERRUPTED = 130
"""What shells take for an end by Ctrl-C."""
KEY_LENGTH = 22


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What the options ask for."""

    start_url: str
    max_pages: int
    max_depth: int | None
    include: list[str]
    exclude: list[str]
    format: list[str]
    idempotency_key: str | None

    @property
    def body(self) -> dict[str, object]:
        """The request; what is not asked for is left to the API's defaults."""
        options = {
            "max_depth": self.max_depth,
            "include": self.include,
            "exclude": self.exclude,
            "formats": self.format,
        }
        given = {field: value for field, value in options.items() if value not in (None, [])}
        return {"url": self.start_url, "max_pages": self.max_pages, **given}


@click.command()
@click.argument("start_url", metavar="URL")
@click.option(
    "--max-pages", type=int, required=True, help="How many pages at most; all are reserved."
)
@click.option("--max-depth", type=int, help="How many links away from the start at most.")
@click.option("--include", multiple=True, help="Only URLs that match this RE2 pattern; repeat it.")
@click.option("--exclude", multiple=True, help="No URLs that match this RE2 pattern; repeat it.")
@click.option(
    "--format", multiple=True, type=click.Choice(get_args(Format)), help="What to keep; repeat it."
)
@click.option("--output", "path", type=FILE, help="Write the pages there, as JSON Lines.")
@click.option("--idempotency-key", help="The same key and options make one job, however often.")
@output.as_json
@calls.talks()
def crawl(api: Api, path: Path | None, as_json: bool, **options: object) -> None:
    """Crawl a site and show what it cost. Ctrl-C cancels the job.

    Exit codes: 0 succeeded, 1 refused or unreachable, 3 failed, 4 cancelled.
    """
    asked = msgspec.convert(options, Asked)
    with opened(path) as file:
        with Interrupts() as interrupts:
            job = watch(api, submit(api, asked), interrupts)
        show(api, job, as_json=as_json)
        if file is not None:
            count = output.write_lines(file, results.pages(api, job.job_id))
            click.echo(f"{count} pages in {path}.", err=True)
    sys.exit(EXIT_CODES[job.state])


@contextlib.contextmanager
def opened(path: Path | None) -> Iterator[BinaryIO | None]:
    """The file for the pages, before anything is paid for them."""
    if path is None:
        yield None
    else:
        with output.replacing(path) as file:
            yield file


def submit(api: Api, asked: Asked) -> httpx.Response:
    """Asks for the job; a call whose answer was lost is made once more, which makes no second."""
    headers = {"Idempotency-Key": asked.idempotency_key or ids.random_text(KEY_LENGTH)}
    try:
        return api.ask("POST", "/v1/crawls", body=asked.body, headers=headers)
    except CallFailed as error:
        if error.code or not error.passing:
            raise
    return api.ask("POST", "/v1/crawls", body=asked.body, headers=headers)


def watch(api: Api, response: httpx.Response, interrupts: Interrupts) -> Job:
    """The job once it has ended. A second Ctrl-C leaves it to itself."""
    job = calls.decode(response, Job)
    try:
        return watching.until_settled(api, response, interrupts)
    except KeyboardInterrupt:
        click.echo(f"Job {job.job_id} goes on: pagetoll status {job.job_id}", err=True)
        sys.exit(INTERRUPTED)


def show(api: Api, job: Job, *, as_json: bool) -> None:
    if as_json:
        output.show_json(calls.decode(api.ask("GET", f"/v1/jobs/{job.job_id}"), Row))
        return
    jobs.show_remarks(job)
    click.echo(bills.bill(job))
