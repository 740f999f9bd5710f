"""`pagetoll refund`, `adjust`, `corrections`: gives or takes credits, with a reason."""

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api, Row

HEAD = ("CORRECTION", "KIND", "CREDITS", "STATE", "REQUESTED BY", "APPROVED BY", "REASON")
STATES = ("pending", "done", "refused")

reason = click.option("--reason", required=True, help="Why; the customer can read it.")
op_key = click.option(
    "--op-key", required=True, help="Names this correction: the same name again does nothing more."
)


@click.command()
@click.argument("tenant_id", type=ID)
@click.argument("job_id", type=ID)
@click.option(
    "--page", "pages", type=int, multiple=True, required=True, help="Its index; repeat it."
)
@click.option("--credits", type=int, help="So many of each page; without it, its whole charge.")
@reason
@op_key
@output.as_json
@calls.talks(admin=True)
def refund(api: Api, tenant_id: str, job_id: str, *, as_json: bool, **asked: object) -> None:
    """Give back what pages of a job were charged, each once (needs an admin key)."""
    body = {name: value for name, value in asked.items() if value is not None}
    path = f"/admin/v1/tenants/{tenant_id}/refunds"
    show(post(api, path, {**body, "job_id": job_id}), as_json=as_json)


@click.command()
@click.argument("tenant_id", type=ID)
@click.argument("direction", type=click.Choice(["in", "out"]))
@click.argument("amount", type=int)
@reason
@op_key
@output.as_json
@calls.talks(admin=True)
def adjust(api: Api, tenant_id: str, *, as_json: bool, **asked: object) -> None:
    """Give credits to a tenant (in), or take some back (out): needs an admin key."""
    show(post(api, f"/admin/v1/tenants/{tenant_id}/adjustments", asked), as_json=as_json)


@click.group()
def corrections() -> None:
    """Refunds and adjustments, and what waits for an approval (needs an admin key)."""


@corrections.command("list")
@click.option("--tenant", "of_tenant", type=ID, help="Of this tenant only.")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@output.as_json
@calls.talks(admin=True)
def list_all(api: Api, of_tenant: str | None, state: str | None, *, as_json: bool) -> None:
    """List corrections, oldest first."""
    path = f"/admin/v1/tenants/{of_tenant}/corrections" if of_tenant else "/admin/v1/corrections"
    found = list(api.items(path, state=state) if state else api.items(path))
    if as_json:
        output.show_json(found)
    else:
        output.show_table(HEAD, [line(one) for one in found])


@corrections.command()
@click.argument("tenant_id", type=ID)
@click.argument("correction_id", type=ID)
@output.as_json
@calls.talks(admin=True)
def approve(api: Api, tenant_id: str, correction_id: str, *, as_json: bool) -> None:
    """Make what another admin asked for; your own takes another key."""
    path = f"/admin/v1/tenants/{tenant_id}/corrections/{correction_id}/approve"
    show(post(api, path, None), as_json=as_json)


@corrections.command()
@click.argument("tenant_id", type=ID)
@click.argument("correction_id", type=ID)
@reason
@output.as_json
@calls.talks(admin=True)
def refuse(api: Api, tenant_id: str, correction_id: str, *, reason: str, as_json: bool) -> None:
    """End a pending correction; nothing moves."""
    path = f"/admin/v1/tenants/{tenant_id}/corrections/{correction_id}/refuse"
    show(post(api, path, {"reason": reason}), as_json=as_json)


def post(api: Api, path: str, body: dict[str, object] | None) -> Row:
    return calls.decode(api.ask("POST", path, body=body), Row)


def show(correction: Row, *, as_json: bool) -> None:
    if as_json:
        output.show_json(correction)
        return
    output.show_table(HEAD, [line(correction)])
    if correction["state"] == "pending":
        click.echo("\nNothing has moved yet: another admin key must approve it.")


def line(one: Row) -> tuple[object, ...]:
    return (
        one["correction_id"],
        one["kind"],
        one["amount"],
        one["state"],
        one["requested_by"],
        one["approved_by"],
        one["reason"],
    )
