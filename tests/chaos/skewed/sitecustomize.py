"""A wall clock that goes wrong, in every Python that starts with this folder in its path.

CHAOS_CLOCK names a file with the seconds to add; it is read whenever the time is asked for.
"""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

from runtime import clock

FILE = Path(os.environ.get("CHAOS_CLOCK", os.devnull))
NANOSECONDS = 1_000_000_000

_true_time = time.time
_true_time_ns = time.time_ns


def offset() -> float:
    return float(FILE.read_text(encoding="ascii") or 0)


def skewed_time() -> float:
    return _true_time() + offset()


def skewed_time_ns() -> int:
    return _true_time_ns() + int(offset() * NANOSECONDS)


def skewed_now() -> datetime:
    return datetime.fromtimestamp(skewed_time(), UTC)


time.time = skewed_time
time.time_ns = skewed_time_ns
clock.now = skewed_now
