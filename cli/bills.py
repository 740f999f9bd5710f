"""A job as the commands read it from the API: its progress and its bill."""

from typing import Any

import msgspec

FINAL = frozenset({"succeeded", "failed", "cancelled"})


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    admitted: int
    succeeded: int
    failed: int
    skipped: int

    @property
    def done(self) -> int:
        return self.succeeded + self.failed + self.skipped


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    credits_reserved: int
    credits_charged: int
    credits_released: int
    settlement_pending: bool


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What the commands read of a job's status; the API tells more."""

    job_id: str
    state: str
    completion_reason: str | None
    progress: Progress
    usage: Usage
    phase: str = ""
    partial: bool = False
    error: dict[str, Any] | None = None
    warnings: list[dict[str, Any]] = []

    @property
    def is_final(self) -> bool:
        return self.state in FINAL

    @property
    def is_settled(self) -> bool:
        return self.is_final and not self.usage.settlement_pending

    @property
    def is_right(self) -> bool:
        """Whether it succeeded and its bill adds up."""
        usage = self.usage
        adds_up = usage.credits_reserved == usage.credits_charged + usage.credits_released
        return self.state == "succeeded" and self.is_settled and adds_up


def describe(job: Job) -> str:
    """The counters in one line."""
    at = job.progress
    return (
        f"{at.succeeded} succeeded, {at.failed} failed, {at.skipped} skipped"
        f" of {at.admitted} admitted"
    )


def bill(job: Job) -> str:
    usage = job.usage
    ending = f"{job.state}, {job.completion_reason}" if job.completion_reason else job.state
    return f"""
The bill of job {job.job_id} ({ending}):
  credits reserved  {usage.credits_reserved:>6}
  credits charged   {usage.credits_charged:>6}
  credits released  {usage.credits_released:>6}
"""
