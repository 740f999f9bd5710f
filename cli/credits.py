"""`pagetoll credits`: shows a balance, and gives credits to a tenant."""

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api, Row

BALANCE = ("available", "held", "refunded", "expired", "granted", "adjusted_out")
LOTS = ("LOT", "SOURCE", "AMOUNT", "REMAINING", "EXPIRES")


@click.group()
def credits() -> None:
    """Balances and grants."""


@credits.command()
@output.as_json
@calls.talks()
def show(api: Api, as_json: bool) -> None:
    """Show your tenant's balance, and its credit lots in the order they are spent."""
    balance = api.read("/v1/credits")
    if as_json:
        output.show_json(balance)
        return
    charged = balance["charged"]
    output.show_fields(
        {
            **{name: balance[name] for name in BALANCE},
            "charged": f"{charged['lifetime']} ever, {charged['period']} this month",
        }
    )
    click.echo()
    output.show_table(LOTS, [lot_line(lot) for lot in balance["lots"]])


@credits.command()
@click.argument("tenant_id", type=ID)
@click.argument("amount", type=int)
@click.option(
    "--op-key", required=True, help="Names this grant: the same name again gives nothing more."
)
@click.option("--expires", help="When they expire: RFC 3339 with its zone, in the future.")
@output.as_json
@calls.talks(admin=True)
def grant(  # one for each option
    api: Api, tenant_id: str, amount: int, *, op_key: str, expires: str | None, as_json: bool
) -> None:
    """Give credits to a tenant (needs an admin key)."""
    body: dict[str, object] = {"amount": amount, "op_key": op_key}
    if expires:
        body["expires_at"] = expires
    response = api.ask("POST", f"/admin/v1/tenants/{tenant_id}/grants", body=body)
    given = calls.decode(response, Row)
    if as_json:
        output.show_json(given)
        return
    said = "had been given before" if given["replayed"] else "given"
    click.echo(f"{amount} credits {said}, lot {given['lot_id']}.")


def lot_line(lot: Row) -> tuple[object, ...]:
    return lot["lot_id"], lot["source"], lot["amount"], lot["remaining"], lot["expires_at"]
