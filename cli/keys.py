"""`pagetoll key`: makes, lists and revokes API keys."""

from typing import get_args

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api, Row
from jobs.vocabulary import Scope

HEAD = ("KEY", "NAME", "SCOPES", "CREATED", "REVOKED")

for_tenant = click.option("--tenant", type=ID, help="Another tenant's key (needs an admin key).")


@click.group()
def key() -> None:
    """API keys."""


@key.command()
@for_tenant
@click.option("--name", default="pagetoll", show_default=True, help="What lists call the key.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(get_args(Scope)),
    help="What the key may do; repeat it. Without it, everything but admin.",
)
@output.as_json
@calls.talks()
def create(api: Api, tenant: str | None, name: str, scopes: tuple[str, ...], as_json: bool) -> None:
    """Make a key. Its secret is shown this once."""
    body: dict[str, object] = {"name": name}
    if scopes:
        body["scopes"] = list(scopes)
    made = calls.decode(api.ask("POST", keys_path(tenant), body=body), Row)
    if as_json:
        output.show_json(made)
        return
    show([made])
    click.echo(f"\n{made['secret']}\nKeep it: it cannot be shown again.")


@key.command("list")
@output.as_json
@calls.talks()
def list_all(api: Api, as_json: bool) -> None:
    """List your tenant's keys, revoked ones too."""
    found = api.read("/v1/keys")["items"]
    if as_json:
        output.show_json(found)
    else:
        show(found)


@key.command()
@click.argument("key_id", type=ID)
@for_tenant
@output.as_json
@calls.talks()
def revoke(api: Api, key_id: str, tenant: str | None, as_json: bool) -> None:
    """Revoke a key, everywhere within seconds."""
    revoked = calls.decode(api.ask("DELETE", f"{keys_path(tenant)}/{key_id}"), Row)
    if as_json:
        output.show_json(revoked)
    else:
        show([revoked])


def keys_path(tenant: str | None) -> str:
    return "/v1/keys" if tenant is None else f"/admin/v1/tenants/{tenant}/keys"


def show(keys: list[Row]) -> None:
    output.show_table(
        HEAD,
        [
            (one["key_id"], one["name"], one["scopes"], one["created_at"], one["revoked_at"])
            for one in keys
        ],
    )
