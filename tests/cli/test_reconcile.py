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
    assert result.stdout.endswith("The books are right.\n")


def test_the_proof_is_whole_in_json(live: Run) -> None:
    assert json.loads(live("reconcile", "--json").stdout)["ok"] is True


def test_a_violation_names_the_first_row_and_exits_with_5(api: ScriptedApi, run: Run) -> None:
    first = {"tenant_id": "t1", "subject": "h1", "detail": "balance 3, entries 4"}
    verdict = {"invariant": "available_is_the_ledgers", "violations": 2, "first": first}
    api.answer("GET /admin/v1/reconciliation", {"ok": False, "verdicts": [verdict]})

    result = run("reconcile")

    assert result.exit_code == reconcile.VIOLATED
    assert "available_is_the_ledgers  2           tenant t1 h1: balance 3, entries 4\n" in (
        result.stdout
    )
    assert result.stdout.endswith("The books are WRONG.\n")
