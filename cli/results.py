"""`pagetoll results`: a job's pages as a table, or with their content as JSON Lines."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import rich_click as click

from cli import calls, output
from cli.arguments import FILE, ID
from cli.calls import Api, Row

HEAD = ("INDEX", "STATUS", "REASON", "HTTP", "CREDITS", "URL")


@click.command()
@click.argument("job_id", type=ID)
@click.option("--output", "path", type=FILE, help="Write the pages with their content there.")
@click.option("--json", "as_json", is_flag=True, help="Print the pages with their content.")
@calls.talks()
def results(api: Api, job_id: str, path: Path | None, as_json: bool) -> None:
    """Show a job's pages; with --output or --json, as JSON Lines with their content."""
    if path is not None:
        with output.replacing(path) as file:
            count = output.write_lines(file, pages(api, job_id))
        click.echo(f"{count} pages in {path}.", err=True)
    elif as_json:
        for page in pages(api, job_id):
            click.echo(msgspec.json.encode(page))
    else:
        found = api.items(f"/v1/jobs/{job_id}/results", include_content="false")
        output.show_table(HEAD, [line_of(page) for page in found])


def pages(api: Api, job_id: str) -> Iterator[Row]:
    """All final pages with their content, in index order; of a job that runs, those so far."""
    return api.items(f"/v1/jobs/{job_id}/results")


def line_of(page: Row) -> tuple[object, ...]:
    return (
        page["index"],
        page["status"],
        page["reason"],
        page["http_status"],
        page["credits"],
        page["url"],
    )
