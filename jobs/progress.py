"""The eight counters, the sums that always hold, and how long to wait before asking again."""

from jobs.records import Job, Progress

RETRY_AFTER_SECONDS_MIN = 1
RETRY_AFTER_SECONDS_MAX = 300
QUEUED_SECONDS = 2


def adds_up(progress: Progress) -> bool:
    """Whether both sums hold, as they must in every answer."""
    return (
        progress.discovered == progress.discovery_excluded + progress.admitted
        and progress.admitted
        == progress.queued
        + progress.in_flight
        + progress.succeeded
        + progress.failed
        + progress.skipped
    )


def retry_after_seconds(job: Job) -> int:
    """When a status is worth asking for again: the time the rest takes at the pace so far."""
    if job.started_at is None:
        return QUEUED_SECONDS
    progress = job.progress
    done = progress.succeeded + progress.failed + progress.skipped
    if not done:
        return RETRY_AFTER_SECONDS_MIN
    elapsed = (job.updated_at - job.started_at).total_seconds()
    rest = (progress.queued + progress.in_flight) * elapsed / done
    return max(RETRY_AFTER_SECONDS_MIN, min(RETRY_AFTER_SECONDS_MAX, round(rest)))
