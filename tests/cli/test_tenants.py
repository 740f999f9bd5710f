"""Tenants are made, listed, suspended and resumed by an admin, through a real gateway."""

import json
from collections.abc import Callable

from click.testing import Result

Run = Callable[..., Result]


def test_a_tenant_is_made_and_listed(live: Run) -> None:
    made = json.loads(live("tenant", "create", "Ann & Sons", "--plan", "local", "--json").stdout)

    assert (made["name"], made["plan_id"], made["status"]) == ("Ann & Sons", "local", "active")
    assert made in json.loads(live("tenant", "list", "--json").stdout)


def test_the_list_is_a_table(live: Run) -> None:
    live("tenant", "create", "Bob")

    head, *lines = live("tenant", "list").stdout.splitlines()

    assert head.split() == ["TENANT", "NAME", "PLAN", "STATUS", "CREATED"]
    assert any(line.split()[1:4] == ["Bob", "default", "active"] for line in lines)


def test_a_tenant_is_suspended_and_taken_back(live: Run) -> None:
    tenant_id = json.loads(live("tenant", "create", "Eve", "--json").stdout)["tenant_id"]

    suspended = json.loads(live("tenant", "suspend", tenant_id, "--json").stdout)
    resumed = json.loads(live("tenant", "resume", tenant_id, "--json").stdout)

    assert (suspended["status"], resumed["status"]) == ("suspended", "active")


def test_a_customers_key_is_no_admins(live: Run) -> None:
    result = live("tenant", "list", PAGETOLL_ADMIN_KEY="pt_live_" + "0" * 12 + "_" + "0" * 43)

    assert result.exit_code == 1
    assert "(unauthenticated)" in result.stderr


def test_a_plan_that_is_not_there_is_refused(live: Run) -> None:
    result = live("tenant", "create", "Zoe", "--plan", "golden")

    assert result.exit_code == 1
    assert "golden" in result.stderr
