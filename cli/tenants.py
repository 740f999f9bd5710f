"""`pagetoll tenant`: makes, lists, suspends and resumes customer accounts."""

from typing import Any

import rich_click as click

from cli import calls, output
from cli.arguments import ID
from cli.calls import Api

HEAD = ("TENANT", "NAME", "PLAN", "STATUS", "CREATED")


@click.group()
def tenant() -> None:
    """Customer accounts (needs an admin key)."""


@tenant.command()
@click.argument("name")
@click.option("--plan", help="The plan; without it the default plan.")
@output.as_json
@calls.talks(admin=True)
def create(api: Api, name: str, plan: str | None, as_json: bool) -> None:
    """Make a tenant, without credits and keys."""
    body = {"name": name, **({"plan_id": plan} if plan else {})}
    response = api.ask("POST", "/admin/v1/tenants", body=body)
    show([calls.decode(response, calls.Row)], as_json=as_json)


@tenant.command("list")
@output.as_json
@calls.talks(admin=True)
def list_all(api: Api, as_json: bool) -> None:
    """List all tenants, oldest first."""
    found = list(api.items("/admin/v1/tenants"))
    if as_json:
        output.show_json(found)
    else:
        show(found, as_json=False)


@tenant.command()
@click.argument("tenant_id", type=ID)
@output.as_json
@calls.talks(admin=True)
def suspend(api: Api, tenant_id: str, as_json: bool) -> None:
    """Refuse a tenant's requests from now on; jobs that run go on."""
    change(api, tenant_id, status="suspended", as_json=as_json)


@tenant.command()
@click.argument("tenant_id", type=ID)
@output.as_json
@calls.talks(admin=True)
def resume(api: Api, tenant_id: str, as_json: bool) -> None:
    """Take a suspended tenant back."""
    change(api, tenant_id, status="active", as_json=as_json)


def change(api: Api, tenant_id: str, *, status: str, as_json: bool) -> None:
    response = api.ask("PATCH", f"/admin/v1/tenants/{tenant_id}", body={"status": status})
    show([calls.decode(response, calls.Row)], as_json=as_json)


def show(tenants: list[dict[str, Any]], *, as_json: bool) -> None:
    if as_json:
        output.show_json(tenants[0])
        return
    output.show_table(
        HEAD,
        [
            (one["tenant_id"], one["name"], one["plan_id"], one["status"], one["created_at"])
            for one in tenants
        ],
    )
