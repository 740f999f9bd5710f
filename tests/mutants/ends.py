"""Guards of releasing, ending, giving and topping up."""

from tests.mutants.money import (
    FINISH,
    LOCKS,
    LOTS,
    MODEL,
    NETS,
    OF_HOLD,
    OF_JOB,
    RACES,
    ROLLING,
    SETTLE,
    guard,
    unlocked,
)

RELEASING = (
    unlocked(
        "release_without_account_lock",
        "release_v1",
        "FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE",
        LOCKS,
    ),
    guard("release_to_the_first_lot", "release_v1", "position DESC", "position", SETTLE),
    guard(
        "release_more_than_was_taken",
        "release_v1",
        "funding.reserved - funding.released)",
        "left_over)",
        NETS,
    ),
    guard("release_of_too_much_is_silent", "release_v1", "IF left_over <> 0", "IF false", NETS),
    guard(
        "release_keeps_the_expired",
        "release_v1",
        "    PERFORM expire_lots_v1(p_tenant);",
        "",
        SETTLE,
    ),
    guard(
        "release_stays_in_caps",
        "release_v1",
        "    PERFORM uncommit_budgets_v1(p_tenant, p_hold, p_amount);",
        "",
        "tests/accounting/test_budgets.py",
    ),
    unlocked(
        "close_without_hold_lock",
        "close_hold_v1",
        "WHERE tenant_id = p_tenant AND hold_id = p_hold FOR NO KEY UPDATE",
        LOCKS,
    ),
    guard("close_twice", "close_hold_v1", "IF h.state = 'closed'", "IF false", LOCKS),
)
ENDING = (
    unlocked("finish_without_job_lock", "finish_job_v1", OF_JOB, LOCKS),
    guard("finish_twice", "finish_job_v1", "j.finished_at IS NOT NULL", "false", FINISH),
    guard(
        "finish_with_an_old_token",
        "finish_job_v1",
        "p_token IS NOT NULL AND j.lease_token <> p_token",
        "false",
        SETTLE,
    ),
    guard("finish_forgets_the_cancel", "finish_job_v1", "j.cancel_requested", "false", SETTLE),
    unlocked("cancel_without_job_lock", "cancel_job_v1", OF_JOB, LOCKS),
    guard("cancel_of_nothing", "cancel_job_v1", "NOT FOUND", "false", FINISH),
    guard(
        "cancel_of_a_final_job",
        "cancel_job_v1",
        "j.finished_at IS NOT NULL OR j.state = 'cancelling'",
        "false",
        FINISH,
    ),
    guard(
        "cancel_over_a_live_run",
        "cancel_job_v1",
        "j.lease_owner IS NULL OR j.lease_until <= now()",
        "true",
        SETTLE,
    ),
    guard("cancel_waits_for_the_dead", "cancel_job_v1", " OR j.lease_until <= now()", "", FINISH),
    guard("sweep_of_the_patient", "sweep_overdue_v1", " AND queue_limit_at <= now()", "", FINISH),
    guard(
        "sweep_cuts_the_last_flush",
        "sweep_overdue_v1",
        "OR deadline_at <= now() - interval '10 s'",
        "OR true",
        FINISH,
    ),
    guard(
        "sweep_leaves_dead_cancels",
        "sweep_overdue_v1",
        "OR (state = 'cancelling' AND (lease_owner IS NULL OR lease_until <= now()))",
        "",
        FINISH,
    ),
    guard("sweep_of_two_at_once", "sweep_overdue_v1", " FOR NO KEY UPDATE SKIP LOCKED", "", RACES),
    guard(
        "orphans_of_running_jobs",
        "settle_orphans_v1",
        " AND o.finished_at IS NOT NULL",
        "",
        NETS,
    ),
)
GIVING = (
    unlocked(
        "grant_without_account_lock",
        "grant_v1",
        "FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE",
        LOCKS,
    ),
    guard("grant_to_nobody", "grant_v1", "IF NOT FOUND THEN", "IF false THEN", LOTS),
    guard(
        "grant_of_another_amount_is_a_replay", "grant_v1", "known.amount = p_amount AND ", "", LOTS
    ),
    guard(
        "grant_of_another_source_is_a_replay", "grant_v1", " AND known.source = p_source", "", LOTS
    ),
    guard(
        "grant_again",
        "grant_v1",
        "FROM lot WHERE tenant_id = p_tenant AND op_key = p_op_key;",
        "FROM lot WHERE false;",
        LOTS,
    ),
    guard("expire_before_its_time", "expire_lots_v1", " AND expires_at <= now()", "", LOTS),
    guard(
        "expire_again",
        "expire_lots_v1",
        "UPDATE lot SET remaining = 0, exhausted = true",
        "UPDATE lot SET remaining = remaining",
        LOTS,
    ),
    unlocked("top_up_without_job_lock", "top_up_v1", OF_JOB, LOCKS),
    guard(
        "top_up_by_an_old_run",
        "top_up_v1",
        "j.lease_token IS DISTINCT FROM p_token OR j.state <> 'running'",
        "false",
        ROLLING,
    ),
    guard("top_up_while_cancelling", "top_up_v1", " OR j.state <> 'running'", "", MODEL),
    unlocked("top_up_without_hold_lock", "top_up_v1", OF_HOLD, LOCKS),
    guard(
        "top_up_over_the_ceiling",
        "top_up_v1",
        "least(p_amount, h.ceiling - h.reserved)",
        "p_amount",
        ROLLING,
    ),
    unlocked(
        "top_up_without_account_lock",
        "top_up_v1",
        "FROM account WHERE tenant_id = p_tenant FOR NO KEY UPDATE",
        LOCKS,
    ),
    guard("top_up_beyond_the_balance", "top_up_v1", "IF balance < amount", "IF false", ROLLING),
    guard(
        "top_up_over_a_cap",
        "top_up_v1",
        "refusing_linked_budget_v1(p_tenant, p_job, amount) IS NOT NULL",
        "false",
        ROLLING,
    ),
)
MUTANTS = (*RELEASING, *ENDING, *GIVING)
