"""`pagetoll jobs`, `status` and `cancel`: what became of submitted work."""

from typing import get_args

import httpx
import rich_click as click

from cli import bills, calls, output
from cli.arguments import ID
from cli.bills import Job
from cli.calls import Api, Row
from jobs.vocabulary import State

HEAD = ("JOB", "KIND", "STATE", "CREATED", "DONE", "ADMITTED", "CHARGED", "RESERVED")


@click.command()
@click.option("--state", type=click.Choice(get_args(State)), help="Only jobs in this state.")
@click.option("--tag", help="Only jobs with this tag.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many.")
@output.as_json
@calls.talks()
def jobs(api: Api, state: str | None, tag: str | None, limit: int, as_json: bool) -> None:
    """List your newest jobs."""
    wanted = {name: value for name, value in (("state", state), ("tag", tag)) if value}
    found = list(api.items("/v1/jobs", limit=limit, **wanted))
    if as_json:
        output.show_json(found)
    else:
        output.show_table(HEAD, [line_of(job) for job in found])


@click.command()
@click.argument("job_id", type=ID)
@output.as_json
@calls.talks()
def status(api: Api, job_id: str, as_json: bool) -> None:
    """Show how far a job is, and its bill."""
    show(api.ask("GET", f"/v1/jobs/{job_id}"), as_json=as_json)


@click.command()
@click.argument("job_id", type=ID)
@output.as_json
@calls.talks()
def cancel(api: Api, job_id: str, as_json: bool) -> None:
    """Cancel a job; what was not charged until now never will be."""
    show(api.ask("DELETE", f"/v1/jobs/{job_id}"), as_json=as_json)


def show(response: httpx.Response, *, as_json: bool) -> None:
    if as_json:
        output.show_json(calls.decode(response, Row))
        return
    job = calls.decode(response, Job)
    click.echo(f"{job.state}: {bills.describe(job)}")
    show_remarks(job)
    click.echo(bills.bill(job))


def show_remarks(job: Job) -> None:
    """Why a job failed, and what else there is to know of it."""
    if job.error is not None:
        click.echo(output.plain(f"{job.error['message']} ({job.error['reason']})"))
    for warning in job.warnings:
        click.echo(output.plain(f"Warning: {warning['message']} ({warning['code']})"))
    if job.partial:
        click.echo("The results are partial.")


def line_of(row: Row) -> tuple[object, ...]:
    at, usage = row["progress"], row["usage"]
    return (
        row["job_id"],
        row["kind"],
        row["state"],
        row["created_at"],
        at["succeeded"] + at["failed"] + at["skipped"],
        at["admitted"],
        usage["credits_charged"],
        usage["credits_reserved"],
    )
