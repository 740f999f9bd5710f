"""A ledger in plain Python, written from the rules alone: what the real one must say."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

EPOCH = datetime(2100, 1, 1, tzinfo=UTC)
GONE = datetime(2001, 1, 1, tzinfo=UTC)
"""Lots expire in days after EPOCH, or have expired at GONE: no clock decides anything here."""
TRANCHE_PAGES = 100


class Lot:
    """Credits that came together. `days` None never expires."""

    def __init__(self, lot_id: UUID, amount: int, days: int | None, priority: int) -> None:
        self.lot_id, self.amount, self.remaining, self.priority = lot_id, amount, amount, priority
        self.expires_at = Ledger.expiry(days)

    @property
    def turn(self) -> tuple[bool, datetime, int, UUID]:
        return (self.expires_at is None, self.expires_at or EPOCH, self.priority, self.lot_id)


class Hold:
    """What a job has bound. `funding` are [lot, reserved, released] in the order of the funding."""

    def __init__(self, ceiling: int, key: str, tags: list[str]) -> None:
        self.ceiling, self.key, self.tags = ceiling, key, tags
        self.reserved = self.charged = self.released = 0
        self.is_open = True
        self.funding: list[list[Any]] = []

    @property
    def left(self) -> int:
        return self.reserved - self.charged - self.released

    @property
    def committed(self) -> int:
        return self.reserved - self.released


class Budget:
    """A cap on all holds that it matches, whenever they began."""

    def __init__(self, budget_id: UUID, node: str, subject: str, cap: int) -> None:
        self.budget_id, self.node, self.subject, self.cap = budget_id, node, subject, cap

    def counts(self, key: str, tags: list[str]) -> bool:
        match self.node:
            case "tenant":
                return True
            case "key":
                return self.subject == key
        return self.subject in tags


class Ledger:
    """One tenant's lots, holds and caps; every move answers what the real one must answer."""

    def __init__(self) -> None:
        self.lots: dict[UUID, Lot] = {}
        self.grants: dict[str, tuple[UUID, int, str]] = {}
        self.holds: dict[UUID, Hold] = {}
        self.budgets: dict[tuple[str, str, str], Budget] = {}
        self.available = self.expired = self.granted = 0

    @staticmethod
    def expiry(days: int | None) -> datetime | None:
        return None if days is None else EPOCH + timedelta(days=days)

    def grant(self, op_key: str, amount: int, source: str, **when: Any) -> str:
        """`when` is the new lot's id, its days and its priority."""
        if op_key in self.grants:
            return "replayed" if self.grants[op_key][1:] == (amount, source) else "conflict"
        lot = Lot(when["lot_id"], amount, when["days"], when["priority"])
        self.lots[lot.lot_id] = lot
        self.grants[op_key] = (lot.lot_id, amount, source)
        self.available += amount
        self.granted += amount
        return "granted"

    def expire(self) -> int:
        """Credits of lots whose time is over leave the balance; how many they were."""
        total = 0
        for lot in self.lots.values():
            if lot.expires_at == GONE:
                total += lot.remaining
                lot.remaining = 0
        self.available -= total
        self.expired += total
        return total

    def committed(self, budget: Budget) -> tuple[int, int]:
        """What the holds under a cap have committed, and how much of that is charged."""
        under = [hold for hold in self.holds.values() if budget.counts(hold.key, hold.tags)]
        return sum(hold.committed for hold in under), sum(hold.charged for hold in under)

    def refusing(self, key: str, tags: list[str], amount: int) -> Budget | None:
        """The cap with the least room of those that this amount would overdraw."""
        over = [
            budget
            for budget in self.budgets.values()
            if budget.counts(key, tags) and self.committed(budget)[0] + amount > budget.cap
        ]
        return min(
            over, key=lambda one: (one.cap - self.committed(one)[0], one.budget_id), default=None
        )

    def refusal(
        self, key: str, tags: list[str], amount: int, *, is_late: bool
    ) -> tuple[str, Any] | None:
        """Why this cannot be bound; what has expired leaves even where the rest is refused."""
        self.expire()
        if is_late:
            return "invalid_request", None
        if self.available < amount:
            return "insufficient_credits", (amount, self.available)
        over = self.refusing(key, tags, amount)
        if over is None:
            return None
        committed, charged = self.committed(over)
        told = (str(over.budget_id), over.cap, charged, committed - charged, amount)
        return "budget_exhausted", told

    def put_budget(self, budget_id: UUID, node: str, subject: str, period: str, cap: int) -> None:
        known = self.budgets.get((node, subject, period))
        assert known is None or known.budget_id == budget_id, "a cap that is changed stays itself"
        self.budgets[node, subject, period] = Budget(budget_id, node, subject, cap)

    @property
    def budget_lines(self) -> dict[UUID, tuple[int, int, int]]:
        """Used, held and cap of each budget."""
        lines = {}
        for budget in self.budgets.values():
            committed, charged = self.committed(budget)
            lines[budget.budget_id] = (charged, committed - charged, budget.cap)
        return lines

    def open(self, job_id: UUID, amount: int, hold: Hold) -> None:
        self.holds[job_id] = hold
        self.fund(hold, amount)

    def fund(self, hold: Hold, amount: int) -> None:
        """Soonest to expire first, then by priority, then the oldest."""
        hold.reserved += amount
        self.available -= amount
        for lot in sorted(self.lots.values(), key=lambda one: one.turn):
            taken = min(amount, lot.remaining)
            if taken:
                lot.remaining -= taken
                amount -= taken
                hold.funding.append([lot, taken, 0])
        assert amount == 0, "the model's lots sum to its balance"

    def release(self, hold: Hold, amount: int) -> None:
        """To the lots that were taken last first; what has expired meanwhile expires at once."""
        if amount <= 0:
            return
        hold.released += amount
        self.available += amount
        for part in reversed(hold.funding):
            lot, reserved, released = part
            back = min(amount, reserved - released)
            part[2] += back
            lot.remaining += back
            amount -= back
        assert amount == 0, "a hold gives back no more than it took"
        self.expire()

    def close(self, hold: Hold) -> None:
        if hold.is_open:
            self.release(hold, hold.left)
            hold.is_open = False

    def top_up(self, hold: Hold, dearest: int) -> str:
        amount = min(TRANCHE_PAGES * dearest, hold.ceiling - hold.reserved)
        if amount <= 0:
            return "at_ceiling"
        self.expire()
        if self.available < amount:
            return "insufficient"
        if self.refusing(hold.key, hold.tags, amount):
            return "over_budget"
        self.fund(hold, amount)
        return "topped_up"

    @property
    def balance(self) -> dict[str, Any]:
        """The numbers of a balance, as the API tells them."""
        spendable = sorted(
            (lot for lot in self.lots.values() if lot.remaining), key=lambda one: one.turn
        )
        return {
            "available": self.available,
            "held": sum(hold.left for hold in self.holds.values() if hold.is_open),
            "charged_lifetime": sum(hold.charged for hold in self.holds.values()),
            "expired": self.expired,
            "granted": self.granted,
            "lots": [(lot.lot_id, lot.remaining) for lot in spendable],
        }
