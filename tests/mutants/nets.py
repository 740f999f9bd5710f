"""Constraints and triggers that stand behind all functions."""

from tests.mutants.mutation import Mutant

LEDGER = "migrations/sql/0002_ledger.up.sql"
JOB_TABLES = "migrations/sql/0003_jobs.up.sql"
SPEED = "migrations/sql/0010_speed.up.sql"
WALLS = "migrations/sql/0004_isolation.up.sql"
CAP_TABLES = "migrations/sql/0005_budgets.up.sql"
SETTLE = "tests/accounting/test_metering_settle.py"
FINISH = "tests/accounting/test_metering_finish.py"
NETS = "tests/accounting/test_nets.py"


def net(name: str, file: str, old: str, new: str, *tests: str) -> Mutant:
    return Mutant(name=name, file=file, old=old, new=new, tests=tests or (NETS,))


MUTANTS = (
    net(
        "balance_below_zero",
        LEDGER,
        "available bigint NOT NULL DEFAULT 0 CHECK (available >= 0)",
        "ALTER TABLE account DROP CONSTRAINT account_available_check",
    ),
    net(
        "lot_below_zero",
        LEDGER,
        "remaining bigint NOT NULL CHECK (remaining BETWEEN 0 AND amount)",
        "ALTER TABLE lot DROP CONSTRAINT lot_check",
    ),
    net(
        "lot_exhausted_with_rest",
        LEDGER,
        "CHECK (exhausted = (remaining = 0))",
        "ALTER TABLE lot DROP CONSTRAINT lot_check1",
    ),
    net(
        "lots_by_one_key",
        LEDGER,
        "    UNIQUE (tenant_id, op_key)\n) WITH",
        "ALTER TABLE lot DROP CONSTRAINT lot_tenant_id_op_key_key",
    ),
    net(
        "entries_by_one_key",
        LEDGER,
        "    UNIQUE (tenant_id, op_key),",
        "ALTER TABLE transfer DROP CONSTRAINT transfer_tenant_id_op_key_key",
    ),
    net(
        "entry_of_nothing",
        LEDGER,
        "amount bigint NOT NULL CHECK (amount > 0),\n    hold_id",
        "ALTER TABLE transfer DROP CONSTRAINT transfer_amount_check",
    ),
    net(
        "entry_between_any_accounts",
        LEDGER,
        "CONSTRAINT posting_rule CHECK",
        "ALTER TABLE transfer DROP CONSTRAINT posting_rule",
    ),
    net(
        "entry_without_its_hold",
        LEDGER,
        "CONSTRAINT hold_rule CHECK",
        "ALTER TABLE transfer DROP CONSTRAINT hold_rule",
    ),
    net(
        "charge_over_the_reserve",
        LEDGER,
        "CONSTRAINT never_over_reserve CHECK",
        "ALTER TABLE hold DROP CONSTRAINT never_over_reserve",
    ),
    net(
        "closed_with_a_rest",
        LEDGER,
        "CONSTRAINT closed_is_settled CHECK",
        "ALTER TABLE hold DROP CONSTRAINT closed_is_settled",
    ),
    net(
        "allocation_gives_too_much",
        LEDGER,
        "CHECK (released BETWEEN 0 AND reserved)",
        "ALTER TABLE hold_allocation DROP CONSTRAINT hold_allocation_check",
    ),
    net(
        "entries_can_change",
        LEDGER,
        "CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON transfer",
        "DROP TRIGGER append_only ON transfer",
    ),
    net(
        "entries_can_be_emptied",
        LEDGER,
        "CREATE TRIGGER append_only_whole BEFORE TRUNCATE ON transfer",
        "DROP TRIGGER append_only_whole ON transfer",
    ),
    net(
        "jobs_by_one_key",
        JOB_TABLES,
        "CREATE UNIQUE INDEX job_idempotency ON job",
        "DROP INDEX job_idempotency",
    ),
    net(
        "pages_in_no_state",
        JOB_TABLES,
        "CONSTRAINT every_admitted_page_has_one_state CHECK",
        "ALTER TABLE job DROP CONSTRAINT every_admitted_page_has_one_state",
    ),
    net(
        "pages_beyond_the_limit",
        JOB_TABLES,
        "CONSTRAINT never_more_than_asked_for CHECK",
        "ALTER TABLE job DROP CONSTRAINT never_more_than_asked_for",
    ),
    net(
        "final_with_open_pages",
        JOB_TABLES,
        "CONSTRAINT final_is_final CHECK",
        "ALTER TABLE job DROP CONSTRAINT final_is_final",
    ),
    net(
        "charge_of_a_failure",
        JOB_TABLES,
        "CONSTRAINT only_success_is_charged CHECK",
        "ALTER TABLE page DROP CONSTRAINT only_success_is_charged",
    ),
    net(
        "charge_without_entry",
        JOB_TABLES,
        "CONSTRAINT a_charge_has_its_transfer CHECK",
        "ALTER TABLE page DROP CONSTRAINT a_charge_has_its_transfer",
    ),
    net(
        "page_twice_in_a_job",
        SPEED,
        "CREATE UNIQUE INDEX page_url",
        "DROP INDEX page_url",
    ),
    net(
        "final_page_changes",
        JOB_TABLES,
        "CREATE TRIGGER final_page_stays",
        "DROP TRIGGER final_page_stays ON page",
        SETTLE,
    ),
    net(
        "final_job_changes",
        JOB_TABLES,
        "CREATE TRIGGER final_job_stays",
        "DROP TRIGGER final_job_stays ON job",
        FINISH,
    ),
    net(
        "tenants_see_one_another",
        WALLS,
        "'ALTER TABLE %I ENABLE ROW LEVEL SECURITY'",
        "ALTER TABLE transfer DISABLE ROW LEVEL SECURITY;"
        "ALTER TABLE job DISABLE ROW LEVEL SECURITY",
        "tests/accounting/test_isolation.py",
    ),
    net(
        "over_the_quoted_ceiling",
        CAP_TABLES,
        "CONSTRAINT never_over_the_quoted_ceiling CHECK",
        "ALTER TABLE hold DROP CONSTRAINT never_over_the_quoted_ceiling",
        "tests/accounting/test_quotes.py",
    ),
    net(
        "cap_below_zero",
        CAP_TABLES,
        "committed bigint NOT NULL DEFAULT 0 CHECK (committed >= 0)",
        "ALTER TABLE budget_use DROP CONSTRAINT budget_use_committed_check",
    ),
)
