"""`pagetoll reconcile`: proves every balance from the ledger's entries."""

import sys

import rich_click as click

from cli import calls, output
from cli.calls import Api, Row

VIOLATED = 5
HEAD = ("INVARIANT", "VIOLATIONS", "FIRST")


@click.command()
@output.as_json
@calls.talks(admin=True)
def reconcile(api: Api, as_json: bool) -> None:
    """Prove every balance from the entries alone (needs an admin key).

    Exit code 5 when an invariant is violated; the table names the first row that breaks it.
    """
    proof = api.read("/admin/v1/reconciliation")
    if as_json:
        output.show_json(proof)
    else:
        output.show_table(HEAD, [line_of(verdict) for verdict in proof["verdicts"]])
        click.echo("\nThe books are right." if proof["ok"] else "\nThe books are WRONG.")
    if not proof["ok"]:
        sys.exit(VIOLATED)


def line_of(verdict: Row) -> tuple[object, ...]:
    first = verdict["first"]
    where = first and f"tenant {first['tenant_id']} {first['subject'] or ''}: {first['detail']}"
    return verdict["invariant"], verdict["violations"], where
