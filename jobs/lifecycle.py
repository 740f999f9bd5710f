"""Which state may follow which; how a run's end becomes a final state."""

from jobs.vocabulary import FINAL_STATES, CompletionReason, State

FOLLOWERS: dict[State, frozenset[State]] = {
    # A job that was paused has results, and may meet its queue limit with them.
    "queued": frozenset({"running", "paused", "succeeded", "failed", "cancelled"}),
    "running": frozenset({"pausing", "paused", "cancelling", "succeeded", "failed", "cancelled"}),
    "pausing": frozenset({"running", "paused", "cancelling", "succeeded", "failed", "cancelled"}),
    "paused": frozenset({"queued", "cancelled"}),
    "cancelling": frozenset({"cancelled"}),
    "succeeded": frozenset(),
    "failed": frozenset(),
    "cancelled": frozenset(),
}

WHOLE: frozenset[CompletionReason] = frozenset({"frontier_exhausted", "completed"})


def may_follow(before: State, after: State) -> bool:
    return after in FOLLOWERS[before]


def is_final(state: State) -> bool:
    return state in FINAL_STATES


def final_state(reason: CompletionReason, *, succeeded: int) -> State:
    """The state a job ends in; end_job_v1 in jobs/functions.sql holds the same rule."""
    if reason == "cancelled":
        return "cancelled"
    return "succeeded" if succeeded else "failed"


def is_partial(reason: CompletionReason, *, succeeded: int, source_failed: bool) -> bool:
    """Whether results were kept although a limit stopped the job or a source failed."""
    return succeeded > 0 and (reason not in WHOLE or source_failed)


def exhausted(*, succeeded: int, page_limit_met: bool, round_limit_met: bool) -> CompletionReason:
    """Why a job ends whose frontier is empty."""
    if not succeeded:
        return "upstream_failure"
    if page_limit_met:
        return "page_limit"
    return "round_limit" if round_limit_met else "frontier_exhausted"
