"""A job and its pages as they are stored, read and sent."""

from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from jobs.vocabulary import (
    CompletionReason,
    Kind,
    PageStatus,
    PauseReason,
    Phase,
    Reason,
    State,
    WarningCode,
)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """discovered = discovery_excluded + admitted; admitted = the sum of the other five."""

    discovered: int
    discovery_excluded: int
    admitted: int
    queued: int
    in_flight: int
    succeeded: int
    failed: int
    skipped: int


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What a job used; the three counters that belong to no kind of job here are always 0."""

    search_requests: int = 0
    fetch_attempts: int
    fetched_urls: int
    browser_renders: int
    input_tokens: int = 0
    output_tokens: int = 0
    credits_reserved: int
    credits_charged: int
    credits_released: int
    settlement_pending: bool


class JobError(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job failed."""

    reason: Reason
    message: str
    retryable: bool = False
    retry_after_seconds: int | None = None


class JobWarning(msgspec.Struct, frozen=True, kw_only=True):
    """Something a customer should know of a job that went on."""

    code: WarningCode
    message: str
    source_id: str | None = None


class QueuePlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a waiting job stands among its tenant's own; 1 is the next."""

    position: int
    starts_in_seconds: int
    """By how long the last jobs ran; longer where other customers' jobs fill the workers."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job's status: all of it was true at one instant."""

    job_id: UUID
    kind: Kind
    url: str | None
    max_pages: int
    state: State
    phase: Phase
    cancel_requested: bool
    partial: bool
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime
    expires_at: datetime | UnsetType = UNSET
    completion_reason: CompletionReason | None
    error: JobError | None
    progress: Progress
    usage: Usage
    warnings: list[JobWarning]
    tags: list[str]
    metadata: dict[str, str]
    price_version: int
    prices: dict[str, int]
    parent_job_id: UUID | None = None
    priority: int = 50
    timeout_seconds: int
    paused_at: datetime | None = None
    pause_reason: PauseReason | None = None
    seconds_left: float | None = None
    queue: QueuePlace | UnsetType = UNSET


class Content(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a page holds, as it is kept in a segment; only the formats asked for are there."""

    markdown: str | UnsetType = UNSET
    html: str | UnsetType = UNSET
    raw_html: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    links: list[dict[str, Any]] | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class Page(Content, frozen=True, kw_only=True, omit_defaults=False):
    """One admitted URL and its outcome, with its content where that was asked for."""

    index: int
    url: str
    final_url: str | None
    depth: int
    status: PageStatus
    reason: Reason | None
    detail: str | None
    http_status: int | None
    content_type: str | None
    fetched_at: datetime | None
    duration_ms: int | None
    bytes: int | None
    credits: int
    entry_id: int | None
    title: str | None


class StoredPage(msgspec.Struct, frozen=True, kw_only=True):
    """A final page's row: the page and where its content is."""

    page: Page
    segment: str | None
    segment_offset: int
    segment_length: int
    content_bytes: int
