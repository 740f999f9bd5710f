"""What a kind of job decides: whether it looks in sitemaps and whether it follows links."""

from collections.abc import Callable

import msgspec

from jobs.requests import JobRequest


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind is a plain value of functions over the request; the engine is the same for all."""

    uses_sitemaps: Callable[[JobRequest], bool]
    follows_links: Callable[[JobRequest], bool]
