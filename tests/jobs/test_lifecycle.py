"""The table of states, and that SQL ends jobs as the table's rule says."""

import itertools
from typing import get_args

import pytest

from jobs import lifecycle
from jobs.vocabulary import FINAL_STATES, CompletionReason, State
from runtime.database import Database

STATES = get_args(State)
REASONS = get_args(CompletionReason)


def test_final_states_are_followed_by_nothing() -> None:
    for before, after in itertools.product(FINAL_STATES, STATES):
        assert not lifecycle.may_follow(before, after)


def test_every_state_is_reached_from_queued_and_reaches_an_end() -> None:
    reached = {"queued"}
    for _ in STATES:
        reached |= {after for before in reached for after in lifecycle.FOLLOWERS[before]}

    assert reached == set(STATES)
    for state in STATES:
        assert lifecycle.is_final(state) == (not lifecycle.FOLLOWERS[state])


@pytest.mark.parametrize(
    ("succeeded", "page_limit", "round_limit", "reason"),
    [
        (0, False, False, "upstream_failure"),
        (0, True, True, "upstream_failure"),
        (1, True, True, "page_limit"),
        (1, False, True, "round_limit"),
        (1, False, False, "frontier_exhausted"),
    ],
)
def test_why_an_empty_frontier_ends_a_job(succeeded, page_limit, round_limit, reason) -> None:
    assert (
        lifecycle.exhausted(
            succeeded=succeeded, page_limit_met=page_limit, round_limit_met=round_limit
        )
        == reason
    )


async def test_sql_and_table_agree_on_every_end(system: Database) -> None:
    """The expressions of end_job_v1, fed with every reason, against the Python rule."""
    async with system.connection() as connection:
        source = await connection.fetchval(
            "SELECT prosrc FROM pg_proc WHERE proname = 'end_job_v1'"
        )
        state_rule = source.split("state =")[1].split("partial =")[0].strip().rstrip(",")
        partial_rule = source.split("partial =")[1].split("completion_reason =")[0].strip()
        for reason, succeeded, failed_source in itertools.product(REASONS, (0, 1), (False, True)):
            warnings = '[{"code": "source_failed"}]' if failed_source else "[]"
            row = await connection.fetchrow(
                f"SELECT {state_rule} AS state, ({partial_rule.rstrip(',')}) AS partial FROM "
                "(SELECT $1::text AS p_reason, $2::int AS succeeded, $3::jsonb AS warnings) AS j",
                reason,
                succeeded,
                warnings,
            )
            assert row["state"] == lifecycle.final_state(reason, succeeded=succeeded)
            assert row["partial"] == lifecycle.is_partial(
                reason, succeeded=succeeded, source_failed=failed_source
            )
