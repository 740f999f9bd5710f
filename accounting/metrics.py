"""What billing and operators can see of credits; gauges of the database are read on a clock."""

from prometheus_client import Counter, Gauge

CREDITS = Gauge(
    "pagetoll_ledger_credits",
    "Credits ever moved, by kind of entry, as the ledger has them.",
    ["kind"],
)
SETTLEMENT_PENDING_JOBS = Gauge(
    "pagetoll_settlement_pending_jobs", "Final jobs whose hold is still open."
)
SETTLEMENT_PENDING_SECONDS = Gauge(
    "pagetoll_settlement_pending_age_seconds", "Age of the oldest final job with an open hold."
)
INVARIANT_VIOLATIONS = Gauge(
    "pagetoll_ledger_invariant_violations",
    "Rows that break an invariant of the ledger, as of the last reconciliation.",
    ["invariant"],
)
RECONCILED_AT = Gauge(
    "pagetoll_ledger_reconciled_timestamp_seconds",
    "When the ledger was last proved, whole or what had moved.",
)
UNSEALED_ENTRIES = Gauge(
    "pagetoll_ledger_unsealed_entries", "Entries of the ledger that no seal holds yet."
)
SEAL_AGE_SECONDS = Gauge(
    "pagetoll_ledger_seal_age_seconds", "Age of the oldest entry without a seal; 0 if none."
)
RETENTION_BACKLOG = Gauge(
    "pagetoll_retention_backlog_jobs", "Jobs whose content is due for deletion."
)
ORPHANS_SETTLED = Counter(
    "pagetoll_orphan_holds_settled_total", "Holds of final jobs that the ledger had to close."
)
