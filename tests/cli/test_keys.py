"""Keys are made for oneself or for a tenant, shown once, listed and revoked."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

Run = Callable[..., Result]


def test_a_made_key_works_until_it_is_revoked(live: Run) -> None:
    made = json.loads(live("key", "create", "--name", "laptop", "--json").stdout)
    assert live("credits", "show", "--key", made["secret"]).exit_code == 0

    revoked = json.loads(live("key", "revoke", made["key_id"], "--json").stdout)

    assert revoked["revoked_at"] is not None
    refused = live("credits", "show", "--key", made["secret"])
    assert refused.exit_code == 1
    assert "(unauthenticated)" in refused.stderr


def test_the_secret_is_shown_once(live: Run) -> None:
    shown = live("key", "create", "--name", "once").stdout
    secret = next(line for line in shown.splitlines() if line.startswith("pt_live_"))

    listed = live("key", "list").stdout

    assert "once" in listed
    assert secret not in listed


def test_a_key_may_do_less(live: Run) -> None:
    made = json.loads(live("key", "create", "--scope", "jobs:read", "--json").stdout)

    assert made["scopes"] == ["jobs:read"]
    assert live("jobs", "--key", made["secret"]).exit_code == 0
    assert "(forbidden)" in live("credits", "show", "--key", made["secret"]).stderr


@pytest.mark.parametrize("scope", ["everything", "jobs"])
def test_a_scope_that_is_not_there_is_not_sent(live: Run, scope: str) -> None:
    assert live("key", "create", "--scope", scope).exit_code == 2


def test_an_admin_makes_and_revokes_a_tenants_key(live: Run) -> None:
    tenant_id = json.loads(live("tenant", "create", "Ann", "--json").stdout)["tenant_id"]

    made = json.loads(live("key", "create", "--tenant", tenant_id, "--json").stdout)
    balance = json.loads(live("credits", "show", "--key", made["secret"], "--json").stdout)
    revoked = live("key", "revoke", made["key_id"], "--tenant", tenant_id)

    assert balance["available"] == 0
    assert revoked.exit_code == 0


def test_another_tenants_key_cannot_be_revoked(live: Run) -> None:
    tenant_id = json.loads(live("tenant", "create", "Ann", "--json").stdout)["tenant_id"]
    made = json.loads(live("key", "create", "--tenant", tenant_id, "--json").stdout)

    assert "(not_found)" in live("key", "revoke", made["key_id"]).stderr
