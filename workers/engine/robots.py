"""What a site's robots.txt allows (RFC 9309), asked for once per origin and remembered."""

import asyncio
import math
import re
from collections.abc import Callable

import msgspec
from protego import Protego

from jobs import urls
from jobs.urls import Target
from runtime import clock, loops
from workers.engine.fetch import Exchange, Fetcher
from workers.engine.outcomes import FetchFailed

ROBOTS_BYTES = 512 * 1024
FETCH_SECONDS = 10.0
RETRY_SECONDS = 1.0
KEPT_SECONDS = 24 * 3600.0  # RFC 9309, 2.4
FAILURE_KEPT_SECONDS = 300.0
MAX_ORIGINS = 10_000
MAX_SITEMAPS = 100
PARSED_INLINE_BYTES = 32 * 1024

_SUCCESS = range(200, 300)
_UNAVAILABLE = range(400, 500)

_LINE_ENDS = re.compile(r"[\r\n]+")
_PRODUCT_TOKEN = re.compile(r"[A-Za-z_-]+")
_RATE = re.compile(r"(\d{1,6})/(\d{1,6})([smhd]?)(?:\s.*)?", re.IGNORECASE)
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_AGENT_NAMES = frozenset({"user-agent", "useragent", "user agent"})
# With the misspellings that the large crawlers forgive.
_DISALLOW_NAMES = frozenset(
    {"disallow", "dissallow", "dissalow", "disalow", "diasllow", "disallaw"}
)
_RULE_NAMES = {"allow": "Allow"} | dict.fromkeys(_DISALLOW_NAMES, "Disallow")
_SITEMAP_NAMES = frozenset({"sitemap", "sitemaps", "site-map"})
_DELAY_NAMES = frozenset({"crawl-delay", "crawl delay", "request-rate"})
_NAMES = "|".join(sorted(_AGENT_NAMES | _RULE_NAMES.keys() | _SITEMAP_NAMES | _DELAY_NAMES))
_RECORD = re.compile(rf"({_NAMES})(?:\s*+:|\s)\s*+(.*)", re.IGNORECASE | re.DOTALL)
_ANY = "*"
_SOMEONE_ELSE = "!"  # no product token holds this character


class RobotsRules(msgspec.Struct, frozen=True, kw_only=True):
    """`crawl_delay` is in seconds, of any size; `sitemaps` are as written, perhaps relative.

    `unreachable` rules allow nothing; `reason` says why, `failure` in a word of the contract.
    Without a `matcher` all is allowed.
    """

    crawl_delay: float | None = None
    sitemaps: tuple[str, ...] = ()
    unreachable: bool = False
    failure: str = ""
    failure_detail: str = ""
    reason: str = ""
    product_token: str = ""
    matcher: Protego | None = None

    @classmethod
    def parse(cls, body: bytes, *, product_token: str) -> "RobotsRules":
        """Never fails: what cannot be read says nothing. Only the first 512 KiB are read."""
        text = body[:ROBOTS_BYTES].decode("utf-8", "replace")
        if len(body) >= ROBOTS_BYTES:
            # A rule that was cut in two may forbid far more than it says.
            text = text[: max(text.rfind("\n"), text.rfind("\r")) + 1]
        reading = _Reading(product_token.lower())
        for line in _LINE_ENDS.split(text.replace("\0", "").lstrip("\ufeff\ufffd")):
            reading.take(line)
        return cls(
            crawl_delay=reading.delay(),
            sitemaps=tuple(reading.sitemaps),
            product_token=reading.token,
            matcher=Protego.parse("\n".join(reading.lines)),
        )

    def allows(self, url: str) -> bool:
        if self.unreachable:
            return False
        return self.matcher is None or bool(self.matcher.can_fetch(url, self.product_token))


class _Reading:
    """Collects the records, spelt as the matcher needs them.

    The matcher would take a part of our product token for all of it, end a group at a delay and
    lose a group behind a byte order mark: so it is shown agents and rules only, made plain.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self.lines: list[str] = []
        self.sitemaps: list[str] = []
        self._delays: dict[str, float] = {}
        self._named = False
        self._agents: list[str] = []
        self._group_has_rules = False

    def take(self, line: str) -> None:
        record = _RECORD.fullmatch(line.partition("#")[0].strip())
        if record is None:
            return
        name, value = record[1].lower(), "".join(record[2].splitlines())
        if name in _AGENT_NAMES:
            self._take_agent(value)
        elif name in _RULE_NAMES:
            self._group_has_rules = True
            self.lines.append(f"{_RULE_NAMES[name]}: {value}")
        elif name in _DELAY_NAMES:
            self._take_delay(value)
        elif name in _SITEMAP_NAMES:
            self._take_sitemap(value)

    def delay(self) -> float | None:
        """Our own group's, or everyone's where no group names us."""
        return self._delays.get(self.token if self._named else _ANY)

    def _take_agent(self, value: str) -> None:
        if self._group_has_rules:
            self._agents, self._group_has_rules = [], False
        token = _PRODUCT_TOKEN.match(value)
        agent = _SOMEONE_ELSE
        if value.startswith(_ANY):
            agent = _ANY
        elif token is not None and token[0].lower() == self.token:
            agent = self.token
            self._named = True
        self._agents.append(agent)
        self.lines.append(f"User-agent: {agent}")

    def _take_delay(self, value: str) -> None:
        seconds = _delay_seconds(value)
        if seconds is not None:
            for agent in self._agents:
                self._delays[agent] = max(seconds, self._delays.get(agent, 0.0))

    def _take_sitemap(self, value: str) -> None:
        fits = 0 < len(value) <= urls.URL_LIMIT_BYTES and len(self.sitemaps) < MAX_SITEMAPS
        if fits and value not in self.sitemaps:
            self.sitemaps.append(value)


def _delay_seconds(value: str) -> float | None:
    """Seconds of a Crawl-delay (2.5) or between the requests of a Request-rate (1/10s)."""
    rate = _RATE.fullmatch(value)
    if rate is not None:
        count = int(rate[1])
        return int(rate[2]) * _UNIT_SECONDS[rate[3].lower()] / count if count else None
    try:
        seconds = float(value)
    except ValueError:
        return None
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


class RobotsCache:
    """The rules of each origin: one request at a time for each, however many ask.

    Kept for 24 hours, failures for 5 minutes, of 10,000 origins at most.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        product_token: str,
        *,
        monotonic: Callable[[], float] = clock.monotonic,
        retry_seconds: float = RETRY_SECONDS,
    ) -> None:
        self._fetcher = fetcher
        self._product_token = product_token
        self._monotonic = monotonic
        self._retry_seconds = retry_seconds
        self._kept: dict[str, tuple[float, RobotsRules]] = {}
        self._loading: dict[str, asyncio.Task[RobotsRules]] = {}

    async def rules_for(self, target: Target) -> RobotsRules:
        """Never raises FetchFailed: what cannot be read forbids everything, and says so."""
        origin = target.origin
        expires, rules = self._kept.get(origin, (-math.inf, None))
        if rules is not None and self._monotonic() < expires:
            return rules
        loading = self._loading.get(origin)
        if loading is None:
            loading = asyncio.create_task(self._load(target))
            self._loading[origin] = loading
            loading.add_done_callback(lambda _: self._loading.pop(origin, None))
        # One job's cancellation must not take the answer from the others that wait.
        return await asyncio.shield(loading)

    async def close(self) -> None:
        """Ends the requests that still run; call it before the fetcher is closed."""
        await loops.end(*self._loading.values())

    async def _load(self, target: Target) -> RobotsRules:
        rules = await self._ask(target)
        kept_for = FAILURE_KEPT_SECONDS if rules.unreachable else KEPT_SECONDS
        self._kept.pop(target.origin, None)
        if len(self._kept) >= MAX_ORIGINS:
            del self._kept[next(iter(self._kept))]
        self._kept[target.origin] = (self._monotonic() + kept_for, rules)
        return rules

    async def _ask(self, target: Target) -> RobotsRules:
        address = robots_target(target)
        rules, again = await self._ask_once(address)
        if again:
            await asyncio.sleep(self._retry_seconds)
            rules, _ = await self._ask_once(address)
        return rules

    async def _ask_once(self, address: Target) -> tuple[RobotsRules, bool]:
        """The rules, and whether asking again may give better ones."""
        try:
            answer = await self._fetcher.download(
                address, timeout_seconds=FETCH_SECONDS, limit_bytes=ROBOTS_BYTES, truncate=True
            )
        except FetchFailed as failure:
            lasting = failure.reason == "blocked" or failure.detail == "redirects"
            return _unreachable(failure), not lasting
        if answer.status in _SUCCESS:
            return await self._parse(answer), False
        if answer.status in _UNAVAILABLE:
            return RobotsRules(), False
        message = f"The site answered {answer.status}."
        refusal = FetchFailed("upstream_error", "robots_unreachable", message=message)
        return _unreachable(refusal), True

    async def _parse(self, answer: Exchange) -> RobotsRules:
        if len(answer.body) <= PARSED_INLINE_BYTES:
            return RobotsRules.parse(answer.body, product_token=self._product_token)
        return await asyncio.to_thread(
            RobotsRules.parse, answer.body, product_token=self._product_token
        )


def robots_target(target: Target) -> Target:
    """Where the origin's robots.txt is: its scheme, host and port, each counts."""
    path = "/robots.txt"
    return msgspec.structs.replace(target, url=f"{target.origin}{path}", path=path, query="")


def _unreachable(failure: FetchFailed) -> RobotsRules:
    return RobotsRules(
        unreachable=True,
        failure=failure.reason,
        failure_detail=failure.detail or "",
        reason=f"robots.txt could not be read. {failure.message}",
    )
