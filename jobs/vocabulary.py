"""The closed word lists of the contract: kinds, states, phases, reasons, warnings."""

from typing import Literal

Kind = Literal["crawl", "batch", "map", "link_extract", "link_check", "audit", "scrape", "intent"]
State = Literal[
    "queued", "running", "pausing", "paused", "cancelling", "succeeded", "failed", "cancelled"
]
Phase = Literal["queued", "sitemap", "crawling", "checking", "done"]
CompletionReason = Literal[
    "frontier_exhausted",
    "completed",
    "page_limit",
    "round_limit",
    "deadline",
    "budget",
    "cancelled",
    "upstream_failure",
    "internal_failure",
]
PauseReason = Literal["requested", "budget"]
PageState = Literal["queued", "in_flight", "succeeded", "failed", "skipped"]
PageStatus = Literal["succeeded", "failed", "skipped"]
PageOutcomeWord = Literal["page", "page_unchanged", "pdf_page", "browser_page"]
"""How a page succeeded, which is what its price is for."""
Reason = Literal[
    "invalid_url",
    "unsupported_content_type",
    "blocked",
    "not_found",
    "rate_limited",
    "timeout",
    "upstream_error",
    "internal_error",
    "out_of_scope",
    "robots_disallowed",
    "duplicate",
    "limit_reached",
    "unsupported_filter",
    "unknown_source",
    "idempotency_conflict",
    "invalid_cursor",
    "result_expired",
    "full_text_unavailable",
    "budget_exhausted",
    "cancelled",
]
WarningCode = Literal[
    "source_failed",
    "source_not_indexed",
    "discovery_truncated",
    "ranking_window_limit",
    "imprecise_date_excluded",
    "content_unavailable",
    "cached_source_stale",
]
Scope = Literal["jobs:read", "jobs:write", "billing:read", "keys:write", "admin"]
Format = Literal["markdown", "html", "raw_html", "text", "links", "metadata"]

FINAL_STATES: frozenset[State] = frozenset({"succeeded", "failed", "cancelled"})
