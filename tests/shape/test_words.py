"""The contract's closed word lists are the same in Python, in the database and in the docs."""

import re
from pathlib import Path
from typing import get_args

import pytest

from accounting.ledger import EntryKind
from accounting.lots import LotSource
from accounting.tenants import TenantStatus
from jobs import lifecycle, vocabulary
from jobs.outcomes import Found
from jobs.vocabulary import FINAL_STATES, State
from runtime.database import Database
from tests.support import builders

ROOT = Path(__file__).resolve().parents[2]
CHECKS = """
SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c
WHERE c.contype = 'c' AND c.conrelid = to_regclass($1) AND c.conkey = ARRAY(
    SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attname = $2)
"""
NAMED = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = $1"
WORD = re.compile(r"'([a-z_:]+)'::text")
FIRST_CELL = re.compile(r"^\| `([^|`]+)` \|", re.MULTILINE)
FOUND_SOURCES = get_args(Found.__annotations__["source"])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("job.kind", get_args(vocabulary.Kind)),
        ("job.state", get_args(vocabulary.State)),
        ("job.completion_reason", get_args(vocabulary.CompletionReason)),
        ("page.state", get_args(vocabulary.PageState)),
        ("page.source", ("seed", *FOUND_SOURCES)),
        ("api_key.scopes", get_args(vocabulary.Scope)),
        ("tenant.status", get_args(TenantStatus)),
        ("lot.source", (*get_args(LotSource), "refund", "adjust")),
    ],
)
async def test_a_column_takes_the_words_that_python_knows(
    system: Database, column: str, words: tuple[str, ...]
) -> None:
    async with system.connection() as connection:
        checks = await connection.fetch(CHECKS, *column.split("."))

    assert set(words) in [set(WORD.findall(check[0])) for check in checks]


async def test_the_ledger_posts_the_kinds_that_python_knows(system: Database) -> None:
    async with system.connection() as connection:
        rule = await connection.fetchval(NAMED, "posting_rule")

    kinds = {words[0] for words in zip(*[iter(WORD.findall(rule))] * 3, strict=True)}
    assert kinds == set(get_args(EntryKind))


async def test_final_states_are_final_in_the_database(system: Database) -> None:
    async with system.connection() as connection:
        rule = await connection.fetchval(NAMED, "final_is_final")

    assert set(WORD.findall(rule)) == FINAL_STATES


PATHS: dict[State, tuple[State, ...]] = {
    "queued": (),
    "running": ("running",),
    "pausing": ("running", "pausing"),
    "paused": ("paused",),
    "cancelling": ("running", "cancelling"),
}
"""How a job comes to each state."""


@pytest.mark.parametrize(
    ("before", "live"),
    [(state, False) for state in sorted(set(get_args(State)) - FINAL_STATES)]
    + [(state, True) for state in ("running", "pausing", "cancelling")],
)
async def test_a_cancel_goes_where_the_table_of_states_permits(
    system: Database, before: State, live: bool
) -> None:
    tenant = await builders.a_tenant(system, credits=100)
    job_id = await builders.a_job(system, tenant.tenant_id)
    async with system.connection() as connection:
        for state in PATHS[before]:
            await connection.execute(
                "UPDATE job SET state = $2, lease_owner = $3,"
                " lease_until = now() + interval '1 hour',"
                " paused_at = CASE $2 WHEN 'paused' THEN now() END,"
                " pause_reason = CASE $2 WHEN 'paused' THEN 'requested' END WHERE job_id = $1",
                job_id,
                state,
                "run" if live else None,
            )

        await connection.execute("SELECT cancel_job_v1($1, $2)", tenant.tenant_id, job_id)
        after = await connection.fetchval("SELECT state FROM job WHERE job_id = $1", job_id)

    assert after == before or lifecycle.may_follow(before, after)


def test_the_docs_have_every_word_once() -> None:
    text = (ROOT / "docs/reasons.md").read_text(encoding="utf-8")
    words = [
        word
        for kind in (vocabulary.Reason, vocabulary.WarningCode, vocabulary.CompletionReason)
        for word in get_args(kind)
    ]

    assert sorted(FIRST_CELL.findall(text)) == sorted(words)
