"""`pagetoll pause`, `resume`, `extend` and `retry`: what a customer may ask of a job."""

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api
from cli.jobs import show


@click.command()
@click.argument("job_id", type=ID)
@output.as_json
@calls.talks()
def pause(api: Api, job_id: str, as_json: bool) -> None:
    """Pause a job: pages in flight finish, and the time that is left is kept."""
    show(api.ask("POST", f"/v1/jobs/{job_id}/pause"), as_json=as_json)


@click.command()
@click.argument("job_id", type=ID)
@output.as_json
@calls.talks()
def resume(api: Api, job_id: str, as_json: bool) -> None:
    """Let a paused job go on with the time that was left."""
    show(api.ask("POST", f"/v1/jobs/{job_id}/resume"), as_json=as_json)


@click.command()
@click.argument("job_id", type=ID)
@click.option("--max-pages", type=click.IntRange(1), help="The new limit, not how many more.")
@click.option("--timeout-seconds", type=click.IntRange(1), help="The new limit, in whole.")
@click.option("--max-credits", type=click.IntRange(1), help="The new ceiling, where there is one.")
@output.as_json
@calls.talks()
def extend(api: Api, job_id: str, as_json: bool, **limits: int | None) -> None:
    """Raise the limits of a job that has not ended; further credits are held for it."""
    body = {name: value for name, value in limits.items() if value is not None}
    show(api.ask("POST", f"/v1/jobs/{job_id}/extend", body=body), as_json=as_json)


@click.command()
@click.argument("job_id", type=ID)
@output.as_json
@calls.talks()
def retry(api: Api, job_id: str, as_json: bool) -> None:
    """Make a new job of the URLs that failed in a way that may pass."""
    show(api.ask("POST", f"/v1/jobs/{job_id}/retry"), as_json=as_json)
