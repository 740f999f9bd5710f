"""What one run of one contender gave, and the median of several."""

import statistics
from collections.abc import Sequence

import msgspec


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One crawl. `cpu_seconds` are the crawler's alone, `others` those of its servers by name.

    `foreign_cores` were used meanwhile by anything else, the site's server included.
    """

    pages: int
    seconds: float
    cpu_seconds: float
    peak_mib: float
    foreign_cores: float
    others: dict[str, float] = {}
    start_ms: float | None = None

    @property
    def pages_a_second(self) -> float:
        return self.pages / self.seconds

    @property
    def cpu_per_1000(self) -> float:
        return self.cpu_seconds * 1000 / self.pages

    @property
    def all_cpu_per_1000(self) -> float:
        return (self.cpu_seconds + sum(self.others.values())) * 1000 / self.pages


def median(runs: Sequence[Measured]) -> Measured:
    """Each figure's own median; all runs are of as many pages."""
    starts = [run.start_ms for run in runs if run.start_ms is not None]
    return Measured(
        pages=runs[0].pages,
        seconds=statistics.median(run.seconds for run in runs),
        cpu_seconds=statistics.median(run.cpu_seconds for run in runs),
        peak_mib=statistics.median(run.peak_mib for run in runs),
        foreign_cores=statistics.median(run.foreign_cores for run in runs),
        others={
            name: statistics.median(run.others[name] for run in runs) for name in runs[0].others
        },
        start_ms=statistics.median(starts) if starts else None,
    )
