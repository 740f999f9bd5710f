"""A job in plain Python: its pages, lease and ends, over the model of the ledger."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.support.ledger_model import Hold, Ledger

LISTED_A_PAGE = 20
SUSPECT_ATTEMPTS = 2
POISON_ATTEMPTS = 4
BARREN_DEATHS = 10
LEFTOVER = {
    "cancelled": "cancelled",
    "deadline": "timeout",
    "budget": "budget_exhausted",
    "internal_failure": "internal_error",
}
FINAL = {"succeeded", "failed", "cancelled"}


class Page:
    """One admitted URL."""

    def __init__(self, depth: int) -> None:
        self.depth, self.state, self.attempts, self.credits = depth, "queued", 0, 0
        self.reason: str | None = None


class ModelJob:
    """One job and what may happen to it; the answers are those of the real calls."""

    def __init__(self, job_id: UUID, ledger: Ledger, hold: Hold, **terms: Any) -> None:
        self.job_id, self.ledger, self.hold = job_id, ledger, hold
        self.max_pages: int = terms["max_pages"]
        self.max_credits: int | None = terms["max_credits"]
        self.is_rolling: bool = terms["is_rolling"]
        self.prices: dict[str, int] = terms["prices"]
        self.state, self.reason, self.partial = "queued", None, False
        self.token = self.deaths = self.excluded = self.extensions = 0
        self.barren_deaths = self.settled_at_death = 0
        self.owner = self.lease_over = self.is_overdue = self.cancel_requested = False
        self.pause_reason: str | None = None
        self.no_time_left = self.pause_is_over = False
        self.pages: list[Page] = [Page(0) for _ in terms["keys"]]
        self.known: set[str] = set(terms["keys"])
        self.listed: dict[str, tuple[int, str | None]] = {}
        """Depth, and why it was refused; None is the page limit alone."""

    @property
    def dearest(self) -> int:
        return max(self.prices.values())

    def count(self, *states: str) -> int:
        return sum(page.state in states for page in self.pages)

    @property
    def may_be_claimed(self) -> bool:
        was_left = self.state == "running" and not self.owner
        waits = self.state == "queued" or (was_left and self.barren_deaths < BARREN_DEATHS)
        return waits and not self.is_overdue

    @property
    def is_busy(self) -> bool:
        return self.owner and self.state in {"running", "pausing", "cancelling"}

    @property
    def has_live_run(self) -> bool:
        return self.owner and not self.lease_over

    def claim(self) -> int:
        self.state, self.owner, self.lease_over = "running", True, False
        self.is_overdue, self.no_time_left = self.no_time_left, False
        self.token += 1
        return self.token

    def claim_pages(self, token: int, limit: int, *, by_level: bool) -> list[int]:
        """The numbers of the pages that are handed out, in their order."""
        if token != self.token or self.state != "running" or self.is_overdue:
            return []
        in_flight = self.count("in_flight")
        room = self.hold.left // self.dearest - in_flight
        open_pages = [page for page in self.pages if page.state in {"queued", "in_flight"}]
        suspects = self.deaths >= SUSPECT_ATTEMPTS and any(
            page.attempts >= SUSPECT_ATTEMPTS for page in open_pages
        )
        if suspects:
            room = 0 if in_flight else 1
        level = min((page.depth for page in open_pages), default=0)
        queued = sorted(
            (page.depth, number)
            for number, page in enumerate(self.pages)
            if page.state == "queued"
            and (not by_level or page.depth == level)
            and (not suspects or page.attempts >= SUSPECT_ATTEMPTS)
        )
        taken = [number for _, number in queued[: max(min(limit, room), 0)]]
        for number in taken:
            self.pages[number].state = "in_flight"
            self.pages[number].attempts += 1
        return taken

    def settle(
        self,
        token: int,
        outcomes: Sequence[tuple[int, str, str | None]],
        found: Sequence[tuple[str, int, str | None]],
    ) -> str:
        """`outcomes` are (page, state, reason or price's name), `found` (key, depth, excluded)."""
        if token != self.token or self.state not in {"running", "pausing"}:
            return "cancelled" if self.state == "cancelling" else "stale"
        for number, state, word in outcomes:
            page = self.pages[number] if number < len(self.pages) else None
            if page is None or page.state != "in_flight":
                continue
            page.state = state
            if state == "succeeded":
                page.credits = self.prices[word or "page"]
                self.hold.charged += page.credits
            else:
                page.reason = word
        self._admit(found)
        finished = self.count("succeeded", "failed", "skipped")
        needed = (self.max_pages - finished) * self.dearest
        self.ledger.release(self.hold, self.hold.left - needed)
        return "settled"

    def _admit(self, found: Sequence[tuple[str, int, str | None]]) -> None:
        fresh = {}
        for key, depth, excluded in found:
            if key not in self.known and key not in self.listed:
                fresh.setdefault(key, (depth, excluded))
        for key, (depth, excluded) in fresh.items():
            if excluded is None and len(self.pages) < self.max_pages:
                self.admit(key, depth)
                continue
            self.excluded += 1
            if len(self.listed) < LISTED_A_PAGE * self.max_pages:
                self.listed[key] = depth, excluded

    def admit(self, key: str, depth: int) -> None:
        self.known.add(key)
        self.pages.append(Page(depth))

    def top_up(self, token: int) -> str:
        if token != self.token or self.state != "running":
            return "stale"
        return self.ledger.top_up(self.hold, self.dearest)

    def finish(self, token: int, reason: str, extensions: int) -> str:
        """By what the run last saw of the job, which may have been extended since."""
        if self.state in FINAL:
            return "already"
        if token != self.token:
            return "stale"
        was_moved = not self.is_overdue if reason == "deadline" else extensions != self.extensions
        if was_moved and not self.cancel_requested:
            return "unfinished"
        self._end("cancelled" if self.cancel_requested else reason)
        return "finished"

    def cancel(self) -> str:
        if self.state in FINAL or self.state == "cancelling":
            return self.state
        self.cancel_requested = True
        if self.has_live_run:
            self.state = "cancelling"
        else:
            self._end("cancelled")
        return self.state

    def sweep(self) -> str | None:
        """The reason that an overdue job is ended with; None where it is left alone."""
        is_barren = self.barren_deaths >= BARREN_DEATHS
        match self.state:
            case "paused" if self.pause_is_over:
                self._end("cancelled")
            case "cancelling" if self.is_overdue or not self.has_live_run:
                self._end("cancelled")
            case "queued" | "running" | "pausing" if self.is_overdue:
                self._end("deadline")
            case "running" if is_barren and not self.owner:
                self._end("internal_failure")
            case _:
                return None
        return self.reason

    def free(self) -> bool:
        """A silent run loses its lease; a page that was alone in four deaths fails for it."""
        if self.state not in {"running", "pausing"} or not self.owner or not self.lease_over:
            return False
        settled = self.count("succeeded", "failed", "skipped")
        alone = [page for page in self.pages if page.state == "in_flight"]
        if self.deaths >= POISON_ATTEMPTS - 1 and len(alone) == 1:
            (page,) = alone
            if page.attempts >= POISON_ATTEMPTS:
                page.state, page.reason = "failed", "internal_error"
        self._let_go()
        self.deaths += 1
        self.barren_deaths = 1 if settled > self.settled_at_death else self.barren_deaths + 1
        self.settled_at_death = settled
        if self.state == "pausing":
            self.rest("requested")
        return True

    def hand_back(self, token: int) -> bool:
        if token != self.token or not self.owner:
            return False
        if self.state == "pausing":
            self.rest("requested")
        else:
            self._let_go()
        return True

    def rest(self, reason: str) -> None:
        """A job that waits in the line has not begun to use its time."""
        if self.state != "queued":
            self.no_time_left = self.is_overdue
        self._let_go()
        self.state, self.pause_reason = "paused", reason

    def _let_go(self) -> None:
        for page in self.pages:
            if page.state == "in_flight":
                page.state = "queued"
        self.owner = self.lease_over = False
        self.token += 1

    def _end(self, reason: str) -> None:
        for page in self.pages:
            if page.state in {"queued", "in_flight"}:
                page.state, page.reason = "skipped", LEFTOVER.get(reason, "limit_reached")
        self.ledger.close(self.hold)
        succeeded = self.count("succeeded")
        self.reason = reason
        self.state = (
            "cancelled" if reason == "cancelled" else "succeeded" if succeeded else "failed"
        )
        self.partial = succeeded > 0 and reason not in {"frontier_exhausted", "completed"}
        self.cancel_requested = self.cancel_requested or reason == "cancelled"
        self.owner, self.pause_reason = False, None
        self.token += 1

    @property
    def status(self) -> dict[str, Any]:
        """What the API tells of it."""
        return {
            "state": self.state,
            "completion_reason": self.reason,
            "partial": self.partial,
            "cancel_requested": self.cancel_requested,
            "discovered": len(self.pages) + self.excluded,
            "discovery_excluded": self.excluded,
            "queued": self.count("queued"),
            "in_flight": self.count("in_flight"),
            "succeeded": self.count("succeeded"),
            "failed": self.count("failed"),
            "skipped": self.count("skipped"),
            "credits_reserved": self.hold.reserved,
            "credits_charged": self.hold.charged,
            "credits_released": self.hold.released,
            "settlement_pending": self.hold.is_open,
        }

    @property
    def life(self) -> tuple[Any, ...]:
        """What nobody is told of it: its lease, its deaths, its pause."""
        return (self.token, self.owner, self.deaths, self.barren_deaths, self.pause_reason)

    @property
    def page_rows(self) -> list[tuple[Any, ...]]:
        return [
            (self.job_id, number, page.state, page.depth, page.attempts, page.credits, page.reason)
            for number, page in enumerate(self.pages)
        ]
