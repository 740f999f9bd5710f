"""What operators can see of runs, fetches and flushes."""

from prometheus_client import Counter, Gauge, Histogram

RUNS = Gauge("pagetoll_worker_runs", "Jobs that this worker runs now.")
RUNS_ENDED = Counter(
    "pagetoll_worker_runs_ended_total", "Runs that ended, by what ended them.", ["reason"]
)
PAGES = Counter("pagetoll_pages_total", "Settled pages by status and reason.", ["status", "reason"])
PAGE_SECONDS = Histogram(
    "pagetoll_page_duration_seconds",
    "From the start of a page's visit to its outcome, waiting for the host included.",
    buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)
FLUSH_SECONDS = Histogram(
    "pagetoll_flush_duration_seconds",
    "Writing one batch of finished pages: its segment, then its transaction.",
    buckets=(0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
)
FLUSH_PAGES = Histogram(
    "pagetoll_flush_pages", "Pages in one batch.", buckets=(1, 2, 5, 10, 20, 35, 50, 100)
)
CREDITS_CHARGED = Counter("pagetoll_worker_credits_charged_total", "Credits this worker charged.")
LATE_PAGES = Counter(
    "pagetoll_late_pages_total", "Finished pages that came too late to be kept or charged."
)
QUEUE_AGE_SECONDS = Histogram(
    "pagetoll_queue_age_seconds",
    "From a job's submit to its first start.",
    buckets=(0.005, 0.02, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1800),
)
SETTLEMENT_SECONDS = Histogram(
    "pagetoll_settlement_duration_seconds",
    "From a run's last settled page to the end of its job, with the hold closed.",
    buckets=(0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120),
)
LEASES_LOST = Counter("pagetoll_leases_lost_total", "Runs that found their lease gone.")
