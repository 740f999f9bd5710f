"""What a machine may do to a ledger, how often, and how replies are told apart."""

import os
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from jobs.outcomes import PageOutcome
from tests.support import work
from tests.support.job_model import ModelJob

IS_LONG = os.environ.get("PAGETOLL_TEST_LONG") == "1"
"""A long run looks where no run has looked before; the others repeat themselves."""
IS_HASTY = os.environ.get("PAGETOLL_TEST_HASTY") == "1"
"""Any failure will do: it is not made smaller."""
SETTINGS = settings(
    max_examples=400 if IS_LONG else 50,
    stateful_step_count=80 if IS_LONG else 40,
    derandomize=not IS_LONG,
    database=None,
    deadline=None,
    print_blob=True,
    phases=[Phase.generate] if IS_HASTY else [Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
PRICES = [{"page": 1}, {"page": 3}, {"page": 1, "browser_page": 5}]
REASONS = [
    "frontier_exhausted",
    "completed",
    "page_limit",
    "deadline",
    "budget",
    "upstream_failure",
]
TAGS = ["blue", "red"]
SMALL = st.integers(0, 7)
WORDS = ["page", "page", "browser_page", "not_found", "duplicate"]
OUTCOME = st.tuples(st.integers(0, 40), st.sampled_from(WORDS))
FOUND = st.tuples(st.integers(0, 60), st.integers(1, 3), st.sampled_from([None, None, "blocked"]))


def told_of(word: str, told: Any) -> Any:
    """What of a reply to a submit can be predicted."""
    match word:
        case "insufficient_credits":
            return told["required"], told["available"]
        case "budget_exhausted":
            budget = told["budget"]
            return tuple(budget[name] for name in ("budget_id", "cap", "used", "held", "required"))
        case "idempotency_conflict":
            return UUID(told["job_id"])
    return told if word in {"created", "replayed"} else None


def state_of(word: str, job: ModelJob) -> tuple[str, str]:
    """A page's end; a price that the job does not have is the page's."""
    if word in {"page", "browser_page"}:
        return "succeeded", word if word in job.prices else "page"
    return ("failed" if word == "not_found" else "skipped"), word


def outcome(number: int, word: str, job: ModelJob) -> PageOutcome:
    state, name = state_of(word, job)
    if state == "succeeded":
        return work.ok(number, outcome=name)
    return work.failed(number) if state == "failed" else work.skipped(number)
