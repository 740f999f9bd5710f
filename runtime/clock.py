"""Now, in UTC, and a monotonic clock: what PostgreSQL's clock does not decide."""

import time
from datetime import UTC, datetime


def now() -> datetime:
    return datetime.now(UTC)


def monotonic() -> float:
    """Seconds on a clock that never goes back; for intervals only."""
    return time.monotonic()
