"""A clerk reads statements, bills and usage at the terminal, and keeps them as files."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]


@pytest.fixture
def key(live: Run) -> str:
    """The key of a tenant with 50 credits."""
    made = json.loads(live("tenant", "create", "Ann", "--json").stdout)
    live("credits", "grant", made["tenant_id"], "50", "--op-key", "a")
    return str(
        json.loads(live("key", "create", "--tenant", made["tenant_id"], "--json").stdout)["secret"]
    )


def test_a_month_is_shown_from_opening_to_closing(live: Run, key: str) -> None:
    shown = [line.split() for line in live("statement", "show", "--key", key).stdout.splitlines()]

    assert shown[1:] == [
        ["opening", "-", "-", "0", "-"],
        ["grant", "-", "1", "50", "50"],
        ["closing", "-", "-", "50", "-"],
        ["of", "it", "held", "-", "-", "0", "-"],
    ]


def test_a_statement_is_kept_in_the_form_of_its_file(live: Run, key: str, tmp_path: Path) -> None:
    for name in ("a.csv", "a.json"):
        assert (
            live("statement", "show", "--key", key, "--output", str(tmp_path / name)).exit_code == 0
        )

    with (tmp_path / "a.csv").open(newline="") as file:
        assert {row["line"] for row in csv.DictReader(file)} == {
            "opening",
            "movement",
            "closing",
            "held",
        }
    assert json.loads((tmp_path / "a.json").read_bytes())["proves"] is True


def test_an_entry_is_explained_in_a_sentence(live: Run, key: str) -> None:
    shown = json.loads(live("statement", "usage", "--key", key, "--json").stdout)
    assert shown["total"]["credits_charged"] == 0

    result = live("statement", "explain", "999999999", "--key", key)

    assert result.exit_code == 1
    assert "(not_found)" in result.stderr


def test_usage_ends_with_its_total(live: Run, key: str) -> None:
    shown = live("statement", "usage", "--by", "host", "--key", key).stdout

    assert shown.splitlines()[-1].split() == ["TOTAL", "0", "0", "0", "0", "0"]


def test_a_month_that_cannot_be_is_told_by_the_api(live: Run, key: str) -> None:
    result = live("statement", "show", "--period", "2026-13", "--key", key)

    assert result.exit_code == 1
    assert "YYYY-MM" in result.stderr


def test_the_bill_of_a_job_that_is_not_there_is_told(live: Run, key: str) -> None:
    result = live("statement", "job", "018f0000-0000-7000-8000-000000000000", "--key", key)

    assert result.exit_code == 1
    assert "(not_found)" in result.stderr
