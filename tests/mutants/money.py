"""Guards of settling: locks, tokens, states, and what is charged and given back."""

from tests.mutants.mutation import Mutant

MONEY = "accounting/functions.sql"
LOCK = " FOR NO KEY UPDATE"
LOCKS = "tests/accounting/test_locks.py"
NETS = "tests/accounting/test_nets.py"
SETTLE = "tests/accounting/test_metering_settle.py"
FINISH = "tests/accounting/test_metering_finish.py"
RESERVE = "tests/accounting/test_metering_reserve.py"
RACES = "tests/accounting/test_races.py"
ROLLING = "tests/accounting/test_rolling.py"
LOTS = "tests/accounting/test_lots.py"
QUOTES = "tests/accounting/test_quotes.py"
ORPHANS = "tests/accounting/test_settlement.py"
MODEL = "tests/accounting/test_model.py"
OF_JOB = "WHERE tenant_id = p_tenant AND job_id = p_job FOR NO KEY UPDATE"
OF_HOLD = "WHERE tenant_id = p_tenant AND hold_id = p_job FOR NO KEY UPDATE"


def guard(name: str, within: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name=name, file=MONEY, within=within, old=old, new=new, tests=tests)


def unlocked(name: str, within: str, old: str, *tests: str) -> Mutant:
    return guard(name, within, old, old.replace(LOCK, ""), *tests)


MUTANTS = (
    unlocked("settle_without_job_lock", "settle_pages_v2", OF_JOB, LOCKS),
    unlocked("settle_without_hold_lock", "settle_pages_v2", OF_HOLD, LOCKS),
    guard(
        "settle_takes_old_tokens",
        "settle_pages_v2",
        "j.lease_token IS DISTINCT FROM p_token OR j.state",
        "j.state",
        LOCKS,
    ),
    guard(
        "settle_after_the_cancel",
        "settle_pages_v2",
        "NOT IN ('running', 'pausing')",
        "NOT IN ('running', 'pausing', 'cancelling')",
        SETTLE,
    ),
    guard(
        "settle_of_a_final_job",
        "settle_pages_v2",
        "OR j.state NOT IN ('running', 'pausing')",
        "",
        SETTLE,
    ),
    guard(
        "settle_into_a_closed_hold",
        "settle_pages_v2",
        "h.state <> 'open' OR h.fence",
        "h.fence",
        LOCKS,
    ),
    guard("settle_past_the_fence", "settle_pages_v2", " OR h.fence <> p_token", "", LOCKS),
    guard(
        "settle_gives_nothing_back",
        "settle_pages_v2",
        "PERFORM release_v1(",
        "PERFORM concat(",
        SETTLE,
    ),
    guard(
        "excess_below_zero",
        "excess_v1",
        "greatest(p_bound - p_pages * dearest_price_v1(p_prices), 0)",
        "p_bound - p_pages * dearest_price_v1(p_prices)",
        SETTLE,
    ),
    guard(
        "charge_leaves_the_hold",
        "charge_v2",
        "SET charged = charged + p_amount",
        "SET charged = charged",
        SETTLE,
    ),
    guard(
        "charge_keeps_the_flush_number",
        "charge_v2",
        "flush_no = flush_no + 1",
        "flush_no = flush_no",
        SETTLE,
    ),
)
