"""Cancel, pause, deadline, lost lease, shutdown: the first of them stops a run."""

import asyncio
from typing import Literal

StopReason = Literal["cancelled", "deadline", "lease_lost", "shutdown"]


class StopSignal:
    """Set once, by the first who has a reason; whoever runs waits for `event`."""

    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.reason: StopReason | None = None

    def set(self, reason: StopReason) -> None:
        if self.reason is None:
            self.reason = reason
            self.event.set()
