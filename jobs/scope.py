"""Which URLs belong to a crawl: a boundary around its start, and the customer's patterns."""

import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import re2

from jobs import urls
from jobs.hosts import DEFAULT_PORTS
from jobs.urls import Target
from runtime.errors import Refusal

ScopeName = Literal["host", "subdomains", "path", "any"]

PATTERNS_LIMIT = 20
PATTERN_LIMIT_CHARACTERS = 512
PATTERN_MEMORY_BYTES = 1024 * 1024


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled expression beside its text; matching takes time linear in the URL's length."""

    text: str
    compiled: Any

    def found_in(self, url: str) -> bool:
        return self.compiled.search(url) is not None


def compile_patterns(patterns: Sequence[str], *, path: str = "patterns") -> tuple[Pattern, ...]:
    """RE2 expressions, each searched for anywhere in a URL.

    Raises Refusal `invalid_request`, with the place of the bad one under `path` of the request.
    """
    if len(patterns) > PATTERNS_LIMIT:
        raise _refusal(f"At most {PATTERNS_LIMIT} patterns are allowed.", path)
    return tuple(_compile(text, f"{path}[{index}]") for index, text in enumerate(patterns))


class Scope:
    """The boundary of one crawl. The start URL itself is inside: that is for callers to keep."""

    def __init__(
        self,
        start: Target,
        scope: ScopeName,
        *,
        include: Sequence[Pattern] = (),
        exclude: Sequence[Pattern] = (),
    ) -> None:
        self._start = start
        self._scope = scope
        self._include = tuple(include)
        self._exclude = tuple(exclude)
        self._directory = start.path[: start.path.rindex("/") + 1]
        self._domain = urls.registrable_domain(start.host)

    def exclusion(self, target: Target) -> str | None:
        """None for a URL inside, else the reason word."""
        if not self._is_within(target) or _first(self._exclude, target.url):
            return "out_of_scope"
        if self._include and not _first(self._include, target.url):
            return "out_of_scope"
        return None

    def matches(self, target: Target) -> dict[str, object]:
        """What decided about a URL: the boundary, and the first pattern of each list found."""
        included, excluded = _first(self._include, target.url), _first(self._exclude, target.url)
        return {
            "url": target.url,
            "reason": self.exclusion(target),
            "within_boundary": self._is_within(target),
            "include_pattern": included.text if included else None,
            "exclude_pattern": excluded.text if excluded else None,
        }

    def _is_within(self, target: Target) -> bool:
        if self._scope == "any":
            return True
        if self._scope == "subdomains":
            return urls.registrable_domain(target.host) == self._domain
        if not self._is_same_host(target):
            return False
        return self._scope == "host" or target.path.startswith(self._directory)

    def _is_same_host(self, target: Target) -> bool:
        start = self._start
        if target.host.removeprefix("www.") != start.host.removeprefix("www."):
            return False
        return target.port == start.port or (_has_usual_port(target) and _has_usual_port(start))


def _has_usual_port(target: Target) -> bool:
    """A site that moves from http to https keeps its pages."""
    return target.port == DEFAULT_PORTS[target.scheme]


def _first(patterns: Sequence[Pattern], url: str) -> Pattern | None:
    return next((pattern for pattern in patterns if pattern.found_in(url)), None)


def _compile(text: str, path: str) -> Pattern:
    if not text or len(text) > PATTERN_LIMIT_CHARACTERS:
        raise _refusal(f"A pattern has 1 to {PATTERN_LIMIT_CHARACTERS} characters.", path)
    if any(unicodedata.category(char) in ("Cc", "Cs") for char in text):
        raise _refusal("A pattern must not hold control characters.", path)
    options = re2.Options()
    options.log_errors = False  # it would write the customer's text to our stderr
    options.max_mem = PATTERN_MEMORY_BYTES
    try:
        return Pattern(text=text, compiled=re2.compile(text, options))
    except re2.error as error:
        raise _refusal(f"The pattern is not supported: {_message(error)}.", path) from None


def _message(error: Exception) -> str:
    """RE2's own words, which repeat a part of the pattern."""
    words = error.args[0] if error.args else ""
    text = words.decode("utf-8", "replace") if isinstance(words, bytes) else str(words)
    return "".join(char if char.isprintable() else f"\\x{ord(char):02x}" for char in text)


def _refusal(message: str, path: str) -> Refusal:
    return Refusal("invalid_request", message, path=path)
