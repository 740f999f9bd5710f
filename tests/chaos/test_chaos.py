"""A short schedule of faults over a mixed load; `make chaos` runs many, and longer ones."""

import os
from pathlib import Path

import pytest

from tests.chaos import story
from tests.chaos.__main__ import LEASE_SECONDS
from tests.chaos.town import Town

pytestmark = [pytest.mark.journey, pytest.mark.slow]

SEED = int(os.environ.get("PAGETOLL_TEST_SEED", "20261130"))
SCHEDULES = 3
FAULTS = 5


def test_every_job_ends_once_and_every_credit_is_accounted_for(servers_folder: Path) -> None:
    folder = servers_folder / "town"
    folder.mkdir()
    folder.chmod(0o755)
    with Town(folder, lease_seconds=LEASE_SECONDS) as town:
        for seed in range(SEED, SEED + SCHEDULES):
            report = story.tell(town, seed, faults=FAULTS)

            assert sum(report.faults.values()) == FAULTS
            assert report.credits == report.pages
