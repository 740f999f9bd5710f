"""Guards of reserving: the account's lock, replays, quotes, balances, caps and lots."""

from tests.mutants.mutation import Mutant

RESERVING = "accounting/reserving_functions.sql"
BUDGETS = "tests/accounting/test_budgets.py"
GROUPS = "tests/accounting/test_reserve_groups.py"
LOCKS = "tests/accounting/test_locks.py"
NETS = "tests/accounting/test_nets.py"
QUOTES = "tests/accounting/test_quotes.py"
RESERVE = "tests/accounting/test_metering_reserve.py"
GROUP = "reserve_group_v1"
JUDGE = "judge_submit_v1"
EARLIER = "earlier_submit_v1"
FUND = "fund_holds_v1"


def guard(name: str, within: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name=name, file=RESERVING, within=within, old=old, new=new, tests=tests)


MUTANTS = (
    guard("reserve_without_account_lock", GROUP, "\n    FOR NO KEY UPDATE OF a", "", LOCKS),
    guard("reserve_for_the_frozen", GROUP, " AND t.frozen_at IS NULL", "", LOCKS),
    guard("reserve_for_the_suspended", GROUP, " AND t.status = 'active'", "", RESERVE),
    guard(
        "reserve_spends_the_expired",
        GROUP,
        "available_credits - expire_lots_v1(p_tenant)",
        "available_credits",
        RESERVE,
    ),
    guard(
        "reserve_for_all_what_is_there_for_one",
        GROUP,
        "available_credits - (item ->> 'credits')::bigint",
        "available_credits",
        GROUPS,
    ),
    guard(
        "reserve_without_a_look_at_caps",
        GROUP,
        "EXISTS (SELECT FROM budget b WHERE b.tenant_id = p_tenant)",
        "false",
        BUDGETS,
    ),
    guard(
        "reserve_counts_in_no_cap",
        GROUP,
        "PERFORM commit_budgets_v1(",
        "PERFORM concat(",
        BUDGETS,
    ),
    guard(
        "reserve_conflict_is_a_replay",
        EARLIER,
        "request = p_wanted.request_hash",
        "true",
        RESERVE,
    ),
    guard("reserve_again_after_a_lost_answer", EARLIER, "IF FOUND OR key", "IF key", GROUPS),
    guard(
        "reserve_twins_of_a_group", EARLIER, "    IF NOT FOUND THEN", "    IF false THEN", GROUPS
    ),
    guard("reserve_by_a_late_quote", JUDGE, " AND q.expires_at > now()", "", QUOTES),
    guard("reserve_by_a_quote_of_other_prices", JUDGE, " AND q.prices = p_wanted.prices", "", NETS),
    guard("reserve_over_the_quote", JUDGE, " AND q.ceiling >= most", "", NETS),
    guard(
        "reserve_without_a_look_at_the_balance",
        JUDGE,
        "p_balance < credits",
        "false",
        RESERVE,
    ),
    guard("fund_below_zero", FUND, " AND available >= total", "", NETS),
    guard(
        "fund_in_any_order",
        FUND,
        "ORDER BY expires_at NULLS LAST, priority, lot_id",
        "ORDER BY lot_id",
        RESERVE,
    ),
    guard(
        "fund_of_lots_that_do_not_sum",
        FUND,
        "    IF this <= cardinality(p_holds) THEN",
        "    IF false THEN",
        NETS,
    ),
)
