"""A job in words, whatever else the API tells of it."""

import msgspec
import pytest

from cli import bills
from cli.bills import Job
from tests.support.scripted_api import a_job


def read(**changes: object) -> Job:
    return msgspec.convert(a_job(**changes), Job)


def test_what_the_api_tells_besides_is_passed_over() -> None:
    assert read(state="running", something_new=[1]).state == "running"


def test_the_bill_names_the_end_and_the_credits() -> None:
    text = bills.bill(
        read(state="succeeded", completion_reason="page_limit", charged=4, released=6)
    )

    assert "(succeeded, page_limit)" in text
    assert [line.split()[1:] for line in text.splitlines() if line.startswith("  ")] == [
        ["reserved", "10"],
        ["charged", "4"],
        ["released", "6"],
    ]


@pytest.mark.parametrize(
    ("state", "pending", "settled"),
    [("running", True, False), ("failed", True, False), ("failed", False, True)],
)
def test_a_job_is_settled_when_it_is_final_and_its_hold_is_closed(
    state: str, pending: bool, settled: bool
) -> None:
    assert read(state=state, settlement_pending=pending).is_settled is settled
