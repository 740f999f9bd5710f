"""What operators can see of a gateway: requests, submits, the queue, the watchdog's work."""

from prometheus_client import Counter, Gauge, Histogram

HTTP_REQUESTS = Counter(
    "pagetoll_http_requests_total",
    "Requests answered, by route template.",
    ["method", "route", "status"],
)
HTTP_SECONDS = Histogram(
    "pagetoll_http_request_duration_seconds",
    "Time from the first byte of a request to the last of its answer.",
    ["route"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60),
)
REFUSALS = Counter("pagetoll_refusals_total", "Requests refused, by code.", ["code"])
JOBS_SUBMITTED = Counter("pagetoll_jobs_submitted_total", "Jobs made, replays left out.", ["kind"])
CREDITS_RESERVED = Counter(
    "pagetoll_credits_reserved_total", "Credits that this gateway's submits have reserved."
)
QUEUED_JOBS = Gauge("pagetoll_queued_jobs", "Jobs that wait for a worker, in the whole system.")
RUNNING_JOBS = Gauge("pagetoll_running_jobs", "Jobs that were started and are not final.")
QUEUE_OLDEST_SECONDS = Gauge("pagetoll_queue_oldest_seconds", "Age of the oldest waiting job.")
LEASES_FREED = Counter(
    "pagetoll_leases_freed_total", "Leases of silent runs that the watchdog freed."
)
JOBS_OVERDUE = Counter("pagetoll_jobs_overdue_total", "Jobs that the watchdog ended.", ["reason"])
for _reason in ("deadline", "cancelled"):
    JOBS_OVERDUE.labels(_reason)  # from zero, so that the first one shows as an increase
RINGS_REPEATED = Counter(
    "pagetoll_rings_repeated_total", "Rings for waiting jobs that nobody had heard."
)
LIMITER_LOCAL = Counter(
    "pagetoll_rate_limits_local_total", "Rate decisions made without Redis, in this process alone."
)
