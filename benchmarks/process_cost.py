"""What processes have used of the machine, read from /proc (Linux)."""

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
_BUSY = slice(1, 9)
_IDLE = (4, 5)
_NAME_END = b") "
_USED = slice(11, 15)
"""utime, stime and the two of children that ended, counted from the state (proc(5))."""


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its live descendants and all it has waited for."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(_NAME_END)[2].split()
    own = sum(int(field) for field in fields[_USED]) / TICKS
    return own + sum(_of_child(child) for child in children(pid))


def children(pid: int) -> list[int]:
    """The live children, whichever thread has started them."""
    found = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (thread / "children").read_text("ascii").split()]
    return found


def peak_mib(pid: int) -> float:
    """The most memory that a process has had at once (VmHWM)."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii", "replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def busy_seconds() -> float:
    """Core seconds that anything on this machine has used since it started."""
    fields = Path("/proc/stat").read_text("ascii").splitlines()[0].split()
    idle = sum(int(fields[place]) for place in _IDLE)
    return (sum(int(field) for field in fields[_BUSY]) - idle) / TICKS


def _of_child(pid: int) -> float:
    try:
        return cpu_seconds(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
