"""The list of guards is the code's: each stands where the list says, exactly once."""

from pathlib import Path

import pytest

from tests.mutants import catalogue, mutation
from tests.mutants.mutation import Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", catalogue.MUTANTS.values(), ids=lambda one: one.name)
def test_a_guard_stands_in_the_source_once(mutant: Mutant) -> None:
    assert mutation.occurrences(mutant) == 1
    assert mutant.old != mutant.new


@pytest.mark.parametrize("mutant", catalogue.MUTANTS.values(), ids=lambda one: one.name)
def test_the_tests_that_should_notice_exist(mutant: Mutant) -> None:
    assert [name for name in mutant.tests if not (ROOT / name).is_file()] == []


def test_no_two_mutants_have_one_name() -> None:
    assert len(catalogue.MUTANTS) == sum(len(one) for one in catalogue.LISTS)
