"""What a run reports: how pages ended, what they discovered, what else there is to tell."""

from datetime import datetime
from typing import Literal

import msgspec

from jobs.records import JobWarning
from jobs.vocabulary import PageOutcomeWord, PageStatus, Phase, Reason


class PageOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """How an admitted page ended, with where its content is."""

    page_no: int
    status: PageStatus
    reason: Reason | None = None
    detail: str | None = None
    final_url: str | None = None
    http_status: int | None = None
    content_type: str | None = None
    title: str | None = None
    bytes: int | None = None
    duration_ms: int | None = None
    fetched_at: datetime | None = None
    content_hash: str | None = None
    outcome: PageOutcomeWord | None = None
    segment: str | None = None
    segment_offset: int | None = None
    segment_length: int | None = None
    content_bytes: int | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A discovered URL and its canonical key in hexadecimal; `excluded` says why it stays out."""

    key: str
    url: str
    depth: int
    source: Literal["link", "sitemap"]
    found_on: int | None = None
    excluded: Reason | None = None


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What else a flush tells of its job."""

    phase: Phase | None = None
    round_limit_met: bool = False
    warnings: list[JobWarning] = []
