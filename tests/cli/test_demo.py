"""The demo's reading of a job, and the bundled site's place."""

import pytest

from cli import bills, demo
from cli.bills import Job, Progress, Usage
from runtime.settings import Settings


def a_job(state: str = "succeeded", *, released: int = 1, pending: bool = False) -> Job:
    return Job(
        job_id="7",
        state=state,
        completion_reason="completed",
        progress=Progress(admitted=5, succeeded=4, failed=1, skipped=0),
        usage=Usage(
            credits_reserved=5,
            credits_charged=4,
            credits_released=released,
            settlement_pending=pending,
        ),
    )


def test_a_succeeded_job_whose_bill_adds_up_is_right() -> None:
    assert a_job().is_right


@pytest.mark.parametrize(
    "job", [a_job("failed"), a_job("running"), a_job(released=0), a_job(pending=True)]
)
def test_any_other_job_is_not_right(job: Job) -> None:
    assert not job.is_right


def test_the_bill_shows_what_was_reserved_charged_and_released() -> None:
    lines = [line.split() for line in bills.bill(a_job()).splitlines() if "credits" in line]

    assert lines == [
        ["credits", "reserved", "5"],
        ["credits", "charged", "4"],
        ["credits", "released", "1"],
    ]


def test_loopback_is_added_to_what_may_be_reached() -> None:
    assert demo.with_loopback(Settings()).allow_networks == "127.0.0.0/8"
    both = demo.with_loopback(Settings(allow_networks="10.0.0.0/8"))
    assert both.allow_networks == "10.0.0.0/8,127.0.0.0/8"


def test_the_site_is_bundled() -> None:
    assert demo.SITE.is_file()
