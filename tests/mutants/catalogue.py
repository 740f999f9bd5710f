"""Every mutant by its name."""

from tests.mutants import ends, life, money, nets, reserving, work
from tests.mutants.mutation import Mutant

LISTS = (
    money.MUTANTS,
    reserving.MUTANTS,
    ends.MUTANTS,
    work.MUTANTS,
    nets.MUTANTS,
    life.MUTANTS,
)
MUTANTS: dict[str, Mutant] = {mutant.name: mutant for one in LISTS for mutant in one}
