"""`pagetoll disputes`: contests charged pages of a job, lists and decides disputes."""

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api, Row

HEAD = ("DISPUTE", "TENANT", "JOB", "STATE", "PAGES", "CHARGED", "REFUNDED", "REASON")
EVIDENCE = ("PAGE", "STATUS", "HTTP", "BYTES", "TYPE", "CREDITS", "REFUNDED", "HASH", "URL")
STATES = ("open", "accepted", "rejected")

reason = click.option("--reason", required=True, help="Why; both sides can read it.")


@click.group()
def disputes() -> None:
    """Charges that customers contest."""


@disputes.command("open")
@click.argument("job_id", type=ID)
@click.option(
    "--page", "pages", type=int, multiple=True, required=True, help="Its index; repeat it."
)
@reason
@output.as_json
@calls.talks()
def open_over(api: Api, job_id: str, *, pages: tuple[int, ...], reason: str, as_json: bool) -> None:
    """Contest charged pages of one of your jobs."""
    body = {"pages": list(pages), "reason": reason}
    show(calls.decode(api.ask("POST", f"/v1/jobs/{job_id}/disputes", body=body), Row), as_json)


@disputes.command("list")
@click.option("--tenant", "of_tenant", type=ID, help="Of this tenant only.")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@output.as_json
@calls.talks(admin=True)
def list_all(api: Api, of_tenant: str | None, state: str | None, *, as_json: bool) -> None:
    """List disputes, oldest first (needs an admin key)."""
    path = f"/admin/v1/tenants/{of_tenant}/disputes" if of_tenant else "/admin/v1/disputes"
    found = list(api.items(path, state=state) if state else api.items(path))
    if as_json:
        output.show_json(found)
    else:
        output.show_table(HEAD, [line(one, one["pages"]) for one in found])


@disputes.command("show")
@click.argument("tenant_id", type=ID)
@click.argument("dispute_id", type=ID)
@output.as_json
@calls.talks(admin=True)
def show_one(api: Api, tenant_id: str, dispute_id: str, *, as_json: bool) -> None:
    """Show a dispute with the evidence to decide by (needs an admin key)."""
    show(api.read(f"/admin/v1/tenants/{tenant_id}/disputes/{dispute_id}"), as_json)


@disputes.command()
@click.argument("tenant_id", type=ID)
@click.argument("dispute_id", type=ID)
@reason
@output.as_json
@calls.talks(admin=True)
def accept(api: Api, tenant_id: str, dispute_id: str, *, reason: str, as_json: bool) -> None:
    """Accept a dispute and refund its pages (needs an admin key)."""
    decided = decide(api, tenant_id, dispute_id, decision="accept", reason=reason)
    show(decided, as_json)
    if decided["state"] == "open" and not as_json:
        click.echo("\nNothing has moved yet: another admin key must approve the refund.")


@disputes.command()
@click.argument("tenant_id", type=ID)
@click.argument("dispute_id", type=ID)
@reason
@output.as_json
@calls.talks(admin=True)
def reject(api: Api, tenant_id: str, dispute_id: str, *, reason: str, as_json: bool) -> None:
    """Reject a dispute (needs an admin key)."""
    show(decide(api, tenant_id, dispute_id, decision="reject", reason=reason), as_json)


def decide(api: Api, tenant_id: str, dispute_id: str, *, decision: str, reason: str) -> Row:
    path = f"/admin/v1/tenants/{tenant_id}/disputes/{dispute_id}/decision"
    body = {"decision": decision, "reason": reason}
    return calls.decode(api.ask("POST", path, body=body), Row)


def show(dispute: Row, as_json: bool) -> None:
    if as_json:
        output.show_json(dispute)
        return
    output.show_table(HEAD, [line(dispute, [page["index"] for page in dispute["pages"]])])
    click.echo()
    output.show_table(EVIDENCE, [evidence(page) for page in dispute["pages"]])


def line(one: Row, pages: list[int]) -> tuple[object, ...]:
    return (
        one["dispute_id"],
        one["tenant_id"],
        one["job_id"],
        one["state"],
        pages,
        one["credits_charged"],
        one["credits_refunded"],
        one["reason"],
    )


def evidence(page: Row) -> tuple[object, ...]:
    return (
        page["index"],
        page["status"],
        page["http_status"],
        page["bytes"],
        page["content_type"],
        page["credits"],
        page["credits_refunded"],
        page["content_hash"],
        page["final_url"] or page["url"],
    )
