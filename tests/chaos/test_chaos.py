"""A short schedule of faults over a mixed load; `make chaos` runs many, and longer ones."""

import os
from pathlib import Path

import pytest

from tests.chaos import story

pytestmark = [pytest.mark.journey, pytest.mark.slow]

SEED = int(os.environ.get("PAGETOLL_TEST_SEED", "20261130"))
FAULTS = 6


def test_every_job_ends_once_and_every_credit_is_accounted_for(servers_folder: Path) -> None:
    report = story.tell(SEED, servers_folder, faults=FAULTS)

    assert sum(report.faults.values()) == FAULTS
    assert report.credits == report.pages
