"""No cell of a CSV is ever a formula, whoever wrote its text."""

import csv
import io
from datetime import UTC, datetime

import pytest

from gateway import tables
from gateway.tables import Column


@pytest.mark.parametrize(
    "text",
    [
        '=HYPERLINK("http://example.com")',
        "+1",
        "-1",
        "@x",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "\u00a0=1",
        "\ufeff=1",
        "＝1",  # noqa: RUF001
        "=1;2",
    ],
)
def test_text_that_begins_like_a_formula_is_made_text(text: str) -> None:
    content = tables.csv_of([Column(text)], [[text]]).decode()

    for row in csv.reader(io.StringIO(content, newline="")):
        assert row == [f"'{text}"]


@pytest.mark.parametrize("text", ["", "plain", "a=b", "https://example.com/?a=-1", "a\nb", 'a"b'])
def test_other_text_comes_back_as_it_was(text: str) -> None:
    content = tables.csv_of([Column("a")], [[text]]).decode()

    assert list(csv.reader(io.StringIO(content, newline="")))[1:] == [[text]]


def test_numbers_stay_numbers() -> None:
    moment = datetime(2026, 11, 30, tzinfo=UTC)

    content = tables.csv_of([Column("a"), Column("b"), Column("c")], [[-5, None, moment]])

    assert content == b'"a","b","c"\r\n-5,"","2026-11-30T00:00:00+00:00"\r\n'
