"""A balance is shown with its lots, and a grant gives once."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def tenant_id(live: Run) -> str:
    made: dict[str, str] = json.loads(live("tenant", "create", "Ann", "--json").stdout)
    return made["tenant_id"]


def balance(live: Run, tenant_id: str) -> str:
    made = json.loads(live("key", "create", "--tenant", tenant_id, "--json").stdout)
    return live("credits", "show", "--key", made["secret"]).stdout


def test_a_grant_is_given_once_for_its_name(live: Run, tenant_id: str) -> None:
    first = live("credits", "grant", tenant_id, "50", "--op-key", "invoice-7")
    second = live("credits", "grant", tenant_id, "50", "--op-key", "invoice-7")

    assert first.stdout.startswith("50 credits given, lot ")
    assert second.stdout.startswith("50 credits had been given before, lot ")
    assert "available     50\n" in balance(live, tenant_id)


def test_a_name_that_is_used_for_another_grant_is_refused(live: Run, tenant_id: str) -> None:
    live("credits", "grant", tenant_id, "50", "--op-key", "invoice-7")

    result = live("credits", "grant", tenant_id, "60", "--op-key", "invoice-7")

    assert result.exit_code == 1
    assert "(idempotency_conflict)" in result.stderr


def test_a_grant_may_expire(live: Run, tenant_id: str) -> None:
    expiry = "2999-01-01T00:00:00Z"
    live("credits", "grant", tenant_id, "5", "--op-key", "a", "--expires", expiry)

    shown = balance(live, tenant_id)

    assert shown.splitlines()[-1].split()[1:] == ["grant", "5", "5", expiry]


@pytest.mark.parametrize(
    ("amount", "expires", "path"),
    [("0", "2999-01-01T00:00:00Z", "$.amount"), ("5", "2001-01-01T00:00:00Z", "$.expires_at")],
)
def test_what_cannot_be_given_is_told_by_the_api(
    live: Run, tenant_id: str, amount: str, expires: str, path: str
) -> None:
    result = live("credits", "grant", tenant_id, amount, "--op-key", "a", "--expires", expires)

    assert result.exit_code == 1
    assert path in result.stderr


def test_the_balance_is_whole_in_json(live: Run) -> None:
    shown = json.loads(live("credits", "show", "--json").stdout)

    spent = shown["charged"]["lifetime"] - shown["refunded"]
    assert shown["granted"] - shown["adjusted_out"] == (
        shown["available"] + shown["held"] + spent + shown["expired"]
    )
