"""Takes one guard after another out of the ledger and tells which test noticed."""

import argparse
import sys
from collections.abc import Sequence

from runtime import clock
from tests.mutants import catalogue, sessions


def main(arguments: Sequence[str] | None = None) -> int:
    """1 when a mutant survives, or when the tests fail without any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="some of the mutants (all)")
    names = parser.parse_args(arguments).names or list(catalogue.MUTANTS)
    mutants = [catalogue.MUTANTS[name] for name in names]
    survivors = []
    with sessions.server() as server:
        tests = sorted({test for mutant in mutants for test in mutant.tests})
        fails = sessions.first_to_notice(server, None, tests)
        if fails is not None:
            print(f"without a mutant {fails} fails: nothing can be told")
            return 1
        for mutant in mutants:
            began = clock.monotonic()
            noticed = sessions.first_to_notice(server, mutant, mutant.tests)
            told = noticed or "nobody: it survived"
            print(f"| {mutant.name} | {told} | {clock.monotonic() - began:.0f} s |", flush=True)
            survivors += [] if noticed else [mutant.name]
    print(f"{len(mutants) - len(survivors)} of {len(mutants)} mutants were noticed")
    for name in survivors:
        print(f"survived: {name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
