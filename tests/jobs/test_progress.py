"""How long to wait before asking again: an estimate with a floor and a ceiling."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from jobs import progress
from jobs.records import Job, Progress, Usage
from runtime import ids

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(*, done: int, left: int, seconds: float, started: bool = True) -> Job:
    return Job(
        job_id=ids.new_id(),
        kind="crawl",
        url="https://example.com/",
        timeout_seconds=300,
        max_pages=10,
        price_version=1,
        prices={"page": 1},
        state="running",
        phase="crawling",
        cancel_requested=False,
        partial=False,
        created_at=START,
        updated_at=START + timedelta(seconds=seconds),
        started_at=START if started else None,
        finished_at=None,
        deadline_at=START,
        completion_reason=None,
        error=None,
        progress=Progress(
            discovered=done + left,
            discovery_excluded=0,
            admitted=done + left,
            queued=left,
            in_flight=0,
            succeeded=done,
            failed=0,
            skipped=0,
        ),
        usage=Usage(
            fetch_attempts=0,
            fetched_urls=0,
            browser_renders=0,
            credits_reserved=0,
            credits_charged=0,
            credits_released=0,
            settlement_pending=True,
        ),
        warnings=[],
        tags=[],
        metadata={},
    )


@pytest.mark.parametrize(
    ("done", "left", "seconds", "expected"),
    [(0, 10, 5, 1), (10, 10, 20, 20), (10, 100_000, 10, 300), (100, 1, 1, 1)],
)
def test_the_rest_at_the_pace_so_far(done, left, seconds, expected) -> None:
    assert progress.retry_after_seconds(a_job(done=done, left=left, seconds=seconds)) == expected


def test_a_queued_job_is_asked_for_again_soon() -> None:
    job = a_job(done=0, left=1, seconds=0, started=False)

    assert progress.retry_after_seconds(job) == progress.QUEUED_SECONDS


@pytest.mark.parametrize("field", Progress.__struct_fields__)
def test_a_counter_that_is_off_by_one_is_noticed(field) -> None:
    good = a_job(done=3, left=4, seconds=1).progress
    bad = msgspec.structs.replace(good, **{field: getattr(good, field) + 1})

    assert progress.adds_up(good)
    assert not progress.adds_up(bad)
