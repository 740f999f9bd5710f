"""Cancel, pause, deadline, lost lease, shutdown: the first of them stops a run."""

import asyncio
from typing import Literal

StopReason = Literal["paused", "cancelled", "deadline", "lease_lost", "shutdown"]


class StopSignal:
    """Set by the first who has a reason; whoever runs waits for `event`.

    A pause lets pages in flight finish; whoever has a harder reason meanwhile sets `cut` as well.
    """

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.cut = asyncio.Event()
        self.reason: StopReason | None = None

    def set(self, reason: StopReason) -> None:
        if self.reason is None or (self.reason == "paused" and reason != "paused"):
            self.reason = reason
            self.event.set()
            if reason not in {"paused", "shutdown"}:
                self.cut.set()
