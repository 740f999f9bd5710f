"""`pagetoll statement`: what moved in a month, a job's bill, and why an entry was made."""

from pathlib import Path

import rich_click as click

from cli import calls, output
from cli.arguments import FILE, ID
from cli.calls import Api, Row

LINES = ("LINE", "PRIOR PERIOD", "ENTRIES", "CREDITS", "EFFECT")
PAGES = ("INDEX", "STATUS", "REASON", "CREDITS", "ENTRY", "URL")
EVIDENCE = ("INDEX", "STATUS", "HTTP", "BYTES", "SHA-256", "FETCHED", "CREDITS", "URL")
USED = ("GROUP", "SUCCEEDED", "FAILED", "SKIPPED", "CHARGED", "REFUNDED")
GROUPINGS = ("day", "kind", "key", "host", "tag")


@click.group()
def statement() -> None:
    """Statements, bills, usage, and why each credit moved."""


@statement.command()
@click.option("--period", help="A month, YYYY-MM; else the present one.")
@click.option("--as-of", help="Only what was recorded before: RFC 3339 with its zone.")
@click.option(
    "--output", "path", type=FILE, help="Write it there: as CSV or PDF where the name says so."
)
@output.as_json
@calls.talks()
def show(  # one for each option
    api: Api, *, period: str | None, as_of: str | None, path: Path | None, as_json: bool
) -> None:
    """Show a month: opening balance, movements by kind, closing balance."""
    sent = {"period": period, "as_of": as_of}
    parameters = {name: value for name, value in sent.items() if value is not None}
    if path is not None:
        form = path.suffix.lower().removeprefix(".")
        parameters["format"] = form if form in {"csv", "pdf"} else "json"
        answer = api.ask("GET", "/v1/credits/statement", parameters=parameters)
        with output.replacing(path) as file:
            file.write(answer.content)
        return
    told = api.read("/v1/credits/statement", **parameters)
    if as_json:
        output.show_json(told)
        return
    output.show_table(LINES, lines_of(told))
    if told["held_by_job"]:
        click.echo()
        jobs = ((one["job_id"], one["credits"]) for one in told["held_by_job"])
        output.show_table(("HELD BY JOB", "CREDITS"), jobs)


@statement.command()
@click.argument("job_id", type=ID)
@output.as_json
@calls.talks()
def job(api: Api, job_id: str, as_json: bool) -> None:
    """Show a job's bill, with a line for each of its first 1,000 pages."""
    told = api.read(f"/v1/jobs/{job_id}/statement", limit="1000")
    if as_json:
        output.show_json(told)
        return
    hold = {name: told["hold"][name] for name in ("reserved", "charged", "released")}
    output.show_fields({**hold, "closing": told["closing"], "refunded": told["refunded"]})
    click.echo()
    output.show_table(PAGES, [page_line(page) for page in told["pages"]])


@statement.command()
@click.argument("entry_id", type=ID)
@output.as_json
@calls.talks()
def explain(api: Api, entry_id: str, as_json: bool) -> None:
    """Show why an entry was made, and the evidence of its first 1,000 pages."""
    told = api.read("/v1/credits/explain", entry=entry_id, limit="1000")
    if as_json:
        output.show_json(told)
        return
    click.echo(output.plain(told["sentence"]))
    if told["job"]:
        click.echo(output.plain(f"Job {told['job']['job_id']}, {told['job']['state']}."))
    if told["pages"]:
        click.echo()
        output.show_table(EVIDENCE, [evidence_line(page) for page in told["pages"]])


@statement.command()
@click.option("--by", type=click.Choice(GROUPINGS), default="day", show_default=True)
@click.option("--from", "start", help="RFC 3339 with its zone; else the first of this month.")
@click.option("--until", help="RFC 3339 with its zone; else now.")
@output.as_json
@calls.talks()
def usage(  # one for each option
    api: Api, *, by: str, start: str | None, until: str | None, as_json: bool
) -> None:
    """Show pages by outcome and credits, and their true total."""
    sent = {"by": by, "from": start, "until": until, "limit": "1000"}
    told = api.read("/v1/usage", **{name: text for name, text in sent.items() if text})
    if as_json:
        output.show_json(told)
        return
    rows = [used_line(group["group"], group) for group in told["items"]]
    output.show_table(USED, [*rows, used_line("TOTAL", told["total"])])


def lines_of(told: Row) -> list[tuple[object, ...]]:
    return [
        ("opening", None, None, told["opening"]["total"], None),
        *(
            (line["kind"], line["prior_period"], line["entries"], line["credits"], line["effect"])
            for line in told["lines"]
        ),
        ("closing", None, None, told["closing"]["total"], None),
        ("of it held", None, None, told["closing"]["held"], None),
    ]


def page_line(page: Row) -> tuple[object, ...]:
    return tuple(page[name] for name in ("index", "status", "reason", "credits", "entry_id", "url"))


def evidence_line(page: Row) -> tuple[object, ...]:
    names = ("index", "status", "http_status", "bytes", "content_hash", "fetched_at", "credits")
    return *(page[name] for name in names), page["url"]


def used_line(name: str, used: Row) -> tuple[object, ...]:
    pages = (used["succeeded"], used["failed"], used["skipped"])
    return name, *pages, used["credits_charged"], used["credits_refunded"]
