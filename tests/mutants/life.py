"""Guards of the rotation, of pauses and of extensions."""

from tests.mutants.mutation import Mutant

JOBS = "jobs/functions.sql"
CONTROLS = "jobs/control_functions.sql"
EXTENSIONS = "accounting/extension_functions.sql"
MONEY = "accounting/functions.sql"
DISPATCH = "tests/jobs/test_dispatch.py"
PAUSES = "tests/jobs/test_controls.py"
EXTENDING = "tests/accounting/test_extensions.py"
ROLLING = "tests/accounting/test_rolling.py"


def guard(file: str, within: str, old: str, new: str, *tests: str, name: str) -> Mutant:
    return Mutant(name=name, file=file, within=within, old=old, new=new, tests=tests)


ROTATION = (
    guard(
        JOBS,
        "next_in_line_v1",
        "greatest(coalesce(d.pass, 0), c.pass) AS pass",
        "coalesce(d.pass, 0) AS pass",
        DISPATCH,
        name="rotation_pays_for_absence",
    ),
    guard(
        JOBS,
        "next_in_line_v1",
        "f.slots::double precision / f.weight, 3, f.tenant_id",
        "3, f.tenant_id",
        DISPATCH,
        "tests/jobs/test_runs.py",
        name="rotation_without_slots",
    ),
    guard(
        JOBS,
        "next_in_line_v1",
        "line.pass + 1.0 / line.weight",
        "line.pass + 1.0",
        DISPATCH,
        name="rotation_without_weight",
    ),
    guard(
        JOBS,
        "next_in_line_v1",
        "j.priority DESC, ",
        "",
        DISPATCH,
        name="line_without_priority",
    ),
    guard(
        JOBS,
        "next_handed_back_v1",
        "\n      AND j.barren_deaths < deaths_limit_v1()",
        "",
        DISPATCH,
        name="dying_runs_for_ever",
    ),
    guard(
        JOBS,
        "free_leases_v1",
        "CASE WHEN settled > j.settled_at_death THEN 1",
        "CASE WHEN false THEN 1",
        DISPATCH,
        name="deaths_that_are_never_forgiven",
    ),
    guard(
        JOBS,
        "claim_job_v1",
        "coalesce(seconds_left, timeout_seconds)",
        "timeout_seconds",
        PAUSES,
        name="resume_with_all_the_time",
    ),
)

PAUSING = (
    guard(
        CONTROLS,
        "pause_job_v1",
        "j.finished_at IS NOT NULL OR j.state = 'cancelling'",
        "j.finished_at IS NOT NULL",
        PAUSES,
        name="pause_of_a_cancel",
    ),
    guard(
        CONTROLS,
        "pause_job_v1",
        " OR j.lease_until <= now()",
        "",
        PAUSES,
        name="pause_waits_for_the_dead",
    ),
    guard(
        CONTROLS,
        "pause_job_v1",
        "SET pause_reason = 'requested'",
        "SET pause_reason = pause_reason",
        EXTENDING,
        name="pause_that_ends_by_itself",
    ),
    guard(
        CONTROLS,
        "rest_job_v1",
        "PERFORM requeue_pages_v1(p_tenant, p_job);",
        "",
        PAUSES,
        name="pause_keeps_pages_in_flight",
    ),
    guard(
        CONTROLS,
        "resume_job_v1",
        "queue_limit_at = now() + interval '30 min',",
        "",
        PAUSES,
        name="resume_with_the_old_queue_limit",
    ),
    guard(
        CONTROLS,
        "end_pause_v1",
        "j.lease_token IS DISTINCT FROM p_token OR j.lease_owner IS NULL",
        "false",
        PAUSES,
        name="pause_by_an_old_run",
    ),
    guard(
        JOBS,
        "hand_back_v1",
        "standing = 'pausing'",
        "false",
        PAUSES,
        name="pausing_without_a_run",
    ),
    guard(
        MONEY,
        "sweep_overdue_v1",
        "OR (state = 'paused' AND paused_at <= now() - interval '7 days')",
        "",
        PAUSES,
        name="pause_for_ever",
    ),
)

EXTENDED = (
    guard(
        EXTENSIONS,
        "extend_job_v1",
        "greatest(j.max_pages, p_max_pages)",
        "coalesce(p_max_pages, j.max_pages)",
        EXTENDING,
        name="extension_that_lowers",
    ),
    guard(
        EXTENSIONS,
        "extend_hold_v1",
        "IF balance < amount OR",
        "IF",
        EXTENDING,
        name="extension_beyond_the_balance",
    ),
    guard(
        EXTENSIONS,
        "extend_hold_v1",
        "(amount > 0 AND refused IS NOT NULL)",
        "false",
        EXTENDING,
        name="extension_over_a_cap",
    ),
    guard(
        EXTENSIONS,
        "extend_hold_v1",
        "WHERE a.tenant_id = j.tenant_id AND t.status = 'active' AND t.frozen_at IS NULL",
        "WHERE a.tenant_id = j.tenant_id",
        EXTENDING,
        name="extension_for_the_suspended",
    ),
    guard(
        EXTENSIONS,
        "grow_hold_v1",
        "SET committed = u.committed + p_amount",
        "SET committed = u.committed",
        ROLLING,
        name="top_up_counts_in_no_cap",
    ),
    guard(
        EXTENSIONS,
        "resume_funded_v1",
        "a.available >= next.amount",
        "true",
        EXTENDING,
        name="resume_without_credits",
    ),
    guard(
        MONEY,
        "finish_run_v1",
        "ELSE j.extensions <> p_extensions END",
        "ELSE false END",
        EXTENDING,
        name="end_of_what_was_extended",
    ),
    guard(
        MONEY,
        "finish_run_v1",
        "j.deadline_at > now() + interval '5 s'",
        "false",
        EXTENDING,
        name="end_at_a_deadline_that_moved",
    ),
)
MUTANTS = (*ROTATION, *PAUSING, *EXTENDED)
