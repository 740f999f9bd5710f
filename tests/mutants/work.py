"""Guards of claims, pages and caps."""

from tests.mutants.mutation import Mutant

JOBS = "jobs/functions.sql"
CAPS = "accounting/budget_functions.sql"
LOCKS = "tests/accounting/test_locks.py"
CASES = "tests/accounting/test_cases.py"
SETTLE = "tests/accounting/test_metering_settle.py"
FINISH = "tests/accounting/test_metering_finish.py"
RACES = "tests/accounting/test_races.py"
BUDGETS = "tests/accounting/test_budgets.py"
RUNS = "tests/jobs/test_runs.py"
NETS = "tests/accounting/test_nets.py"
OF_JOB = "WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE"


def guard(name: str, within: str, old: str, new: str, *tests: str, file: str = JOBS) -> Mutant:
    return Mutant(name=name, file=file, within=within, old=old, new=new, tests=tests)


CLAIMING = (
    guard(
        "enter_another_tenant",
        "enter_tenant_v1",
        "entered <> p_tenant::text",
        "false",
        "tests/accounting/test_isolation.py",
    ),
    guard(
        "claim_by_two",
        "claim_job_v1",
        "    PERFORM pg_advisory_xact_lock(hashtext('pagetoll.dispatch'));",
        "",
        RUNS,
        RACES,
    ),
    guard(
        "claim_past_the_queue_limit",
        "next_in_line_v1",
        " AND j.queue_limit_at > now()",
        "",
        FINISH,
    ),
    guard(
        "claim_over_the_plan",
        "free_tenants_v1",
        "coalesce(busy.slots, 0) < p.running_jobs",
        "true",
        RUNS,
    ),
    guard(
        "claim_for_the_suspended",
        "free_tenants_v1",
        " AND t.status = 'active'",
        "",
        RUNS,
        "tests/accounting/test_model.py",
    ),
    guard(
        "claim_leaves_the_fence",
        "claim_job_v1",
        "SET fence = chosen.lease_token + 1",
        "SET fence = fence",
        SETTLE,
    ),
    guard(
        "claim_keeps_the_token",
        "claim_job_v1",
        "lease_token = lease_token + 1",
        "lease_token = lease_token",
        SETTLE,
    ),
    guard(
        "free_keeps_the_token",
        "free_leases_v1",
        "lease_token = j.lease_token + 1",
        "lease_token = j.lease_token",
        RUNS,
        SETTLE,
    ),
    guard("free_of_the_living", "free_leases_v1", " AND lease_until <= now()", "", RUNS),
    guard("free_of_one_by_two", "free_leases_v1", " FOR NO KEY UPDATE SKIP LOCKED", "", RACES),
    guard("hand_back_by_an_old_run", "hand_back_v1", " AND lease_token = p_token", "", LOCKS),
    guard(
        "pages_without_job_lock",
        "claim_pages_v1",
        OF_JOB,
        OF_JOB.replace(" FOR NO KEY UPDATE", ""),
        LOCKS,
    ),
    guard(
        "pages_by_an_old_run",
        "claim_pages_v1",
        "IF j.lease_token <> p_token THEN",
        "IF false THEN",
        LOCKS,
    ),
    guard("pages_after_the_cancel", "take_pages_v1", " OR p_job.state <> 'running'", "", LOCKS),
    guard("pages_past_the_deadline", "take_pages_v1", " OR p_job.deadline_at <= now()", "", LOCKS),
    guard(
        "pages_that_nobody_pays",
        "take_pages_v1",
        "least(p_limit, p_outstanding / dearest - p_in_flight)",
        "p_limit",
        SETTLE,
    ),
    guard(
        "pages_in_flight_are_free",
        "take_pages_v1",
        "p_outstanding / dearest - p_in_flight",
        "p_outstanding / dearest",
        SETTLE,
    ),
    guard(
        "pages_are_handed_out_twice",
        "take_pages_v1",
        "          AND p.state = 'queued' AND p.depth <= level",
        "          AND p.depth <= level",
        SETTLE,
        RACES,
    ),
    guard(
        "write_of_final_pages",
        "write_pages_v2",
        " AND p.state = 'in_flight' OFFSET 0",
        " OFFSET 0",
        SETTLE,
    ),
    guard(
        "write_of_what_was_told_last",
        "write_pages_v2",
        "ORDER BY t.page_no, t.place",
        "ORDER BY t.page_no, t.place DESC",
        CASES,
    ),
    guard(
        "write_credits_of_failures",
        "write_pages_v2",
        "credits = CASE WHEN d.state = 'succeeded' THEN d.credits ELSE 0 END",
        "credits = 1",
        SETTLE,
    ),
    guard(
        "write_entry_of_the_free",
        "write_pages_v2",
        "CASE WHEN d.state = 'succeeded' AND d.credits > 0 THEN p_transfer END",
        "p_transfer",
        SETTLE,
    ),
    guard(
        "found_beyond_max_pages",
        "write_found_v2",
        "f.excluded IS NULL AND f.rank <= p_job.max_pages - p_job.admitted",
        "f.excluded IS NULL",
        SETTLE,
    ),
    guard(
        "end_without_skipping",
        "skip_open_pages_v1",
        "AND settled_at IS NULL",
        "AND state = 'queued'",
        SETTLE,
    ),
)
CAPPING = (
    guard(
        "cap_ignores_what_is_held",
        "refusing_budget_v1",
        "WHERE coalesce(u.committed, 0) + p_amount > b.cap",
        "WHERE p_amount > b.cap",
        BUDGETS,
        file=CAPS,
    ),
    guard(
        "cap_names_the_loosest",
        "refusing_budget_v1",
        "ORDER BY b.cap - coalesce(u.committed, 0), b.budget_id",
        "ORDER BY b.cap - coalesce(u.committed, 0) DESC, b.budget_id",
        NETS,
        file=CAPS,
    ),
    guard(
        "cap_of_every_period",
        "refusing_budget_v1",
        "\n        AND u.period_start = start.at",
        "",
        NETS,
        BUDGETS,
        file=CAPS,
    ),
    guard(
        "cap_counts_only_the_last",
        "commit_budgets_v1",
        "committed = u.committed + excluded.committed",
        "committed = excluded.committed",
        BUDGETS,
        file=CAPS,
    ),
    guard(
        "cap_forgets_what_came_before",
        "put_budget_v1",
        "        PERFORM count_earlier_holds_v1(made);",
        "        NULL;",
        BUDGETS,
        file=CAPS,
    ),
    guard(
        "cap_set_without_account_lock",
        "put_budget_v1",
        "    PERFORM 1 FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE;",
        "",
        LOCKS,
        file=CAPS,
    ),
)
MUTANTS = (*CLAIMING, *CAPPING)
