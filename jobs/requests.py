"""What a customer may ask for, one struct per kind, defaults filled in."""

from typing import Annotated, Literal, TypeAlias
from uuid import UUID

import msgspec
from msgspec import Meta

from jobs import scope, urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target
from jobs.vocabulary import Format, Kind
from runtime.errors import Refusal

Pattern = Annotated[str, Meta(min_length=1, max_length=512)]
Patterns = Annotated[list[Pattern], Meta(max_length=20)]
Tag = Annotated[str, Meta(min_length=1, max_length=64, pattern=r"^[^\x00-\x1f\x7f]+$(?!\n)")]
MetadataText = Annotated[str, Meta(max_length=500, pattern=r"^[^\x00]*$")]
HeaderValue = Annotated[str, Meta(max_length=2_000, pattern=r"^[\x20-\x7e]*$(?!\n)")]

HEADER_NAMES = frozenset(
    {"accept", "accept-language", "authorization", "cookie", "referer", "x-api-key"}
)
"""Headers a customer may send along; none of them speaks to a metadata service or a proxy."""

FORMATS: tuple[Format, ...] = ("markdown", "links", "metadata")
"""What a page is kept as where nothing is asked for."""

NOT_YET = {
    "render": "pages are not rendered in a browser here; only `none` can be asked for",
}


class CrawlRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A crawl from one start URL; `url` and `max_pages` are required: no implicit budget."""

    url: Annotated[str, Meta(min_length=1, max_length=4_096)]
    max_pages: Annotated[int, Meta(ge=1, le=10_000_000)]
    max_depth: Annotated[int, Meta(ge=0, le=1_000)] | None = None
    max_rounds: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    scope: Literal["host", "subdomains", "path", "any"] = "host"
    include: Patterns = []
    exclude: Patterns = []
    sitemap: Literal["include", "skip", "only"] = "include"
    query: Literal["keep", "strip"] = "keep"
    robots: Literal["obey", "ignore"] = "obey"
    formats: Annotated[list[Format], Meta(min_length=1, max_length=6)] = msgspec.field(
        default_factory=lambda: list(FORMATS)
    )
    only_main_content: bool = True
    render: Literal["none", "auto", "browser"] = "none"
    headers: Annotated[dict[str, HeaderValue], Meta(max_length=20)] = {}
    timeout_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 300
    page_timeout_seconds: Annotated[int, Meta(ge=1, le=120)] = 30
    max_credits: Annotated[int, Meta(ge=1, le=1_000_000_000_000)] | None = None
    reservation: Literal["full", "rolling"] = "full"
    quote_id: UUID | None = None
    delay_seconds: Annotated[float, Meta(ge=0, le=60)] = 0.0
    max_concurrency: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    priority: Annotated[int, Meta(ge=0, le=100)] = 50
    when_out_of_credits: Literal["end", "pause"] = "end"
    tags: Annotated[list[Tag], Meta(max_length=20)] = []
    metadata: Annotated[dict[Tag, MetadataText], Meta(max_length=50)] = {}


JobRequest: TypeAlias = CrawlRequest

KIND_OF: dict[type[JobRequest], Kind] = {CrawlRequest: "crawl"}
REQUEST_OF: dict[str, type[JobRequest]] = {kind: made for made, kind in KIND_OF.items()}


class Extension(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """New limits of a job, in whole: what is lower than now, or not sent, stays as it is."""

    max_pages: Annotated[int, Meta(ge=1, le=10_000_000)] | None = None
    timeout_seconds: Annotated[int, Meta(ge=1, le=86_400)] | None = None
    max_credits: Annotated[int, Meta(ge=1, le=1_000_000_000_000)] | None = None


class PlanLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the tenant's plan permits of a request."""

    max_pages: int
    max_timeout_seconds: int
    may_ignore_robots: bool


def kind_of(request: JobRequest) -> Kind:
    return KIND_OF[type(request)]


def validate(request: CrawlRequest, *, policy: AddressPolicy, limits: PlanLimits) -> Target:
    """The start URL, parsed; raises Refusal naming the field that cannot be accepted."""
    for field, message in NOT_YET.items():
        if getattr(request, field) != getattr(_DEFAULTS, field):
            raise invalid(field, message)
    if request.max_pages > limits.max_pages:
        raise invalid("max_pages", f"the plan permits {limits.max_pages} pages a job")
    if request.timeout_seconds > limits.max_timeout_seconds:
        raise invalid("timeout_seconds", f"the plan permits {limits.max_timeout_seconds} s")
    if request.robots == "ignore" and not limits.may_ignore_robots:
        raise invalid("robots", "the plan does not permit ignoring robots.txt")
    _check_headers(request)
    _check_patterns(request)
    try:
        return urls.parse_target(request.url, policy=policy)
    except urls.UrlRefused as refused:
        raise Refusal(
            refused.code,
            refused.message,
            errors=[{"path": "$.url", "message": refused.message}],
        ) from refused


def invalid(field: str, message: str) -> Refusal:
    """A refusal of one field, with its path."""
    return Refusal(
        "invalid_request",
        f"{field}: {message}.",
        errors=[{"path": f"$.{field}", "message": message}],
    )


def _check_headers(request: CrawlRequest) -> None:
    for name in request.headers:
        if name.lower() not in HEADER_NAMES:
            raise invalid("headers", f"permitted are {', '.join(sorted(HEADER_NAMES))}")


def _check_patterns(request: CrawlRequest) -> None:
    for field, patterns in (("include", request.include), ("exclude", request.exclude)):
        try:
            scope.compile_patterns(patterns)
        except Refusal as refused:
            raise invalid(field, refused.message.rstrip(".")) from refused


_DEFAULTS = CrawlRequest(url="https://example.com/", max_pages=1)
