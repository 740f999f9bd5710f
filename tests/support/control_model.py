"""What customers and operators may do to the job of the model: pause, resume, extend."""

from tests.support.job_model import FINAL, ModelJob
from tests.support.ledger_model import TRANCHE_PAGES


class ControlledJob(ModelJob):
    """A job with its controls; the answers are those of the real calls."""

    @property
    def is_ending(self) -> bool:
        return self.state in FINAL or self.state == "cancelling"

    def pause(self) -> str:
        if self.is_ending:
            return "invalid_state"
        if self.state == "paused":
            self.pause_reason = "requested"
        elif self.state == "queued" or not self.has_live_run:
            self.rest("requested")
        else:
            self.state = "pausing"
        return self.state

    def resume(self) -> str:
        if self.is_ending:
            return "invalid_state"
        if self.state == "pausing":
            self.state = "running"
        elif self.state == "paused":
            self.state, self.pause_reason = "queued", None
            self.is_overdue = self.pause_is_over = False
        return self.state

    def end_pause(self, token: int) -> str:
        """The run has let its pages finish."""
        if token != self.token or not self.owner:
            return "stale"
        if self.state == "cancelling":
            return "cancelled"
        if self.state == "running":
            self.hand_back(token)
            return "handed_back"
        self.rest("requested")
        return "paused"

    def pause_for_budget(self, token: int, extensions: int) -> str:
        if token != self.token or not self.owner:
            return "stale"
        if self.state == "cancelling":
            return "cancelled"
        if extensions != self.extensions:
            return "unfinished"
        self.rest("requested" if self.state == "pausing" else "budget")
        return "paused"

    def extend(self, pages: int, credits: int | None, *, is_suspended: bool) -> str | int:
        """The credits that are held further, or the word of a refusal."""
        if self.is_ending:
            return "invalid_state"
        pages = max(pages, self.max_pages)
        own = None if self.max_credits is None else max(self.max_credits, credits or 0)
        if (pages, own) == (self.max_pages, self.max_credits):
            return 0
        most = pages * self.dearest
        ceiling = most if own is None else min(most, own)
        amount = self._further(ceiling)
        if is_suspended:
            return "tenant_suspended"
        self.ledger.expire()
        if self.ledger.available < amount:
            return "insufficient_credits"
        if amount and self.ledger.refusing(self.hold.key, self.hold.tags, amount):
            return "budget_exhausted"
        self.hold.ceiling = ceiling
        self.ledger.fund(self.hold, amount)
        self.max_pages, self.max_credits = pages, own
        self.extensions += 1
        self._readmit()
        return amount

    def _further(self, ceiling: int) -> int:
        """A full reservation is held at once, a rolling one where it cannot pay the next page."""
        if not self.is_rolling:
            return ceiling - self.hold.ceiling
        if self.hold.left < (self.count("in_flight") + 1) * self.dearest:
            return min(TRANCHE_PAGES * self.dearest, ceiling - self.hold.reserved)
        return 0

    def _readmit(self) -> None:
        """What only the page limit kept out, shallowest first."""
        waiting = [(depth, key) for key, (depth, why) in self.listed.items() if why is None]
        for depth, key in sorted(waiting)[: self.max_pages - len(self.pages)]:
            del self.listed[key]
            self.excluded -= 1
            self.admit(key, depth)

    def resume_funded(self) -> bool:
        """It waits for credits, and could pay for the next page now."""
        if self.state != "paused" or self.pause_reason != "budget":
            return False
        hold = self.hold
        amount = min(TRANCHE_PAGES * self.dearest, hold.ceiling - hold.reserved)
        can_be_topped_up = (
            0 < amount <= self.ledger.available
            and self.ledger.refusing(hold.key, hold.tags, amount) is None
        )
        if hold.left < self.dearest and not can_be_topped_up:
            return False
        self.resume()
        return True
