"""The proof of the books is a table, and a broken one has an exit code of its own."""

import json
from collections.abc import Callable

from click.testing import Result

from cli import reconcile
from tests.support.scripted_api import ScriptedApi

Run = Callable[..., Result]


def test_books_that_are_right_are_said_to_be(live: Run) -> None:
    result = live("reconcile")

    assert result.exit_code == 0
    assert "accounts_sum_to_zero " in result.stdout
    assert "content_is_kept " not in result.stdout
    assert result.stdout.endswith("The books are right.\n")


def test_the_proof_is_whole_in_json(live: Run) -> None:
    assert json.loads(live("reconcile", "--json").stdout)["ok"] is True


def test_a_violation_names_the_first_row_and_exits_with_5(api: ScriptedApi, run: Run) -> None:
    first = {"tenant_id": "t1", "subject": "h1", "detail": "balance 3, entries 4"}
    verdict = {"invariant": "available_is_the_ledgers", "violations": 2, "first": first}
    answer = {"ok": False, "verdicts": [verdict], "frozen": ["t1"]}
    api.answer("POST /admin/v1/reconciliation", answer)

    result = run("reconcile")

    assert result.exit_code == reconcile.VIOLATED
    assert "available_is_the_ledgers  2           tenant t1 h1: balance 3, entries 4\n" in (
        result.stdout
    )
    assert result.stdout.endswith(
        "The books are WRONG.\nTenant t1 is frozen: it reserves nothing more.\n"
    )


def test_the_options_say_what_is_proved(api: ScriptedApi, run: Run) -> None:
    api.answer("POST /admin/v1/reconciliation", {"ok": True, "verdicts": [], "frozen": []})

    for options in ((), ("--recent",), ("--full", "--content")):
        assert run("reconcile", *options).exit_code == 0

    assert [asked.body for asked in api.asked] == [
        {"scope": "full", "content": False},
        {"scope": "recent", "content": False},
        {"scope": "full", "content": True},
    ]


def test_a_frozen_tenant_is_let_go_with_a_reason(api: ScriptedApi, run: Run) -> None:
    api.answer("POST /admin/v1/tenants/t1/unfreeze", {"tenant_id": "t1"})

    result = run("unfreeze", "t1", "--reason", "looked")

    assert result.stdout == "Tenant t1 may reserve again.\n"
    assert api.asked[0].body == {"reason": "looked"}
    assert run("unfreeze", "t1").exit_code == 2


def test_a_tenant_that_is_not_frozen_is_said_so(live: Run) -> None:
    result = live("unfreeze", "0193", "--reason", "looked")

    assert result.exit_code == 1
    assert "(not_found)" in result.stderr
