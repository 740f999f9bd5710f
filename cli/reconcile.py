"""`pagetoll reconcile` and `unfreeze`: proves the books, and lets a frozen tenant go on."""

import sys

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api, Row

VIOLATED = 5
HEAD = ("INVARIANT", "VIOLATIONS", "FIRST")


@click.command()
@click.option(
    "--full/--recent", "full", default=True, help="Prove everything, or only what moved lately."
)
@click.option("--content", is_flag=True, help="Look for the stored content of paid pages too.")
@output.as_json
@calls.talks(admin=True)
def reconcile(api: Api, full: bool, content: bool, as_json: bool) -> None:
    """Prove every balance from the entries alone (needs an admin key).

    Exit code 5 when an invariant is violated; the table names the first row that breaks it.
    """
    body = {"scope": "full" if full else "recent", "content": content}
    proof = calls.decode(api.ask("POST", "/admin/v1/reconciliation", body=body), Row)
    if as_json:
        output.show_json(proof)
    else:
        output.show_table(HEAD, [line_of(verdict) for verdict in proof["verdicts"]])
        click.echo("\nThe books are right." if proof["ok"] else "\nThe books are WRONG.")
        for tenant_id in proof.get("frozen", []):
            click.echo(f"Tenant {tenant_id} is frozen: it reserves nothing more.")
    if not proof["ok"]:
        sys.exit(VIOLATED)


@click.command()
@click.argument("tenant_id", type=ID)
@click.option("--reason", required=True, help="Why its books are right again; the log keeps it.")
@calls.talks(admin=True)
def unfreeze(api: Api, tenant_id: str, reason: str) -> None:
    """Let a tenant reserve again that a failed proof has frozen (needs an admin key)."""
    api.ask("POST", f"/admin/v1/tenants/{tenant_id}/unfreeze", body={"reason": reason})
    click.echo(f"Tenant {tenant_id} may reserve again.")


def line_of(verdict: Row) -> tuple[object, ...]:
    first = verdict["first"]
    where = first and f"tenant {first['tenant_id']} {first['subject'] or ''}: {first['detail']}"
    return verdict["invariant"], verdict["violations"], where
