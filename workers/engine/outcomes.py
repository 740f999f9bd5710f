"""Why a page could not be had, in the contract's words."""

_MESSAGES = {
    "blocked": "The address is not one that may be fetched.",
    "not_found": "The page does not exist.",
    "rate_limited": "The site asked us to slow down.",
    "timeout": "The page did not arrive in time.",
    "upstream_error": "The site could not deliver the page.",
    "unsupported_content_type": "The body is of a type that is not turned into a page.",
    "limit_reached": "The page is larger than a page may be.",
    "out_of_scope": "The page is outside the job's scope.",
    "robots_disallowed": "The site's robots.txt does not allow this page.",
    "duplicate": "The page was fetched under another address.",
}


class FetchFailed(Exception):
    """One fetch that gave no page.

    `reason` is a word of the contract; `detail` narrows it (dns, tls, refused, too_large,
    redirects, slow, ...). `retryable` says whether the same request may succeed later.
    """

    def __init__(
        self,
        reason: str,
        detail: str | None = None,
        *,
        message: str = "",
        retryable: bool = False,
        retry_after_seconds: float | None = None,
    ) -> None:
        self.reason = reason
        self.detail = detail
        self.message = message or _MESSAGES.get(reason, "The page could not be fetched.")
        self.retryable = retryable
        self.retry_after_seconds = retry_after_seconds
        super().__init__(self.message)
