"""The ledger's benchmark charges what it says, and its history breaks no rule."""

import pytest

from benchmarks import ledger, ledger_load, pgbench, whole_system
from benchmarks.ledger_load import Life


@pytest.mark.slow
def test_a_quick_run_measures_everything() -> None:
    with whole_system.folder() as place:
        figures = ledger.measure(place, 1_000, 1, quick=True)

    quick = ledger.QUICK["pages"] * ledger.QUICK["workers"]
    warm_up = ledger.WARM_UP.pages * ledger.WARM_UP.workers
    charged = {name: life.charged for name, life in figures.lives.items()}
    assert charged == {
        name: quick - quick // mix.fails_every if mix.fails_every else quick
        for name, mix in ledger.MIXES.items()
    }
    assert figures.pages == sum(charged.values()) + warm_up + 1_000
    assert figures.reserves > 0
    assert (figures.pgbench is None) == (pgbench.program() is None)
    text = ledger.table(figures)
    assert all(name in text for name in ledger.MIXES)


async def test_a_load_without_pgbench_says_so() -> None:
    life = Life(charged=10, seconds=2.0, steps={"flush": [1.0], "reserve": [1.0], "finish": [1.0]})
    figures = ledger.Figures(
        lives={"one": life},
        reserves=100.0,
        reserve_times=[1.0, 2.0],
        pgbench=None,
        proof={"rule": 0.5},
        pages=500_000,
    )

    text = ledger.table(figures)

    assert "| one | 5 | 1.0 | 1.0 | 1.0 | 1.0 |" in text
    assert "pgbench was not found" in text
    assert "1.00 s per million pages" in text


async def test_the_load_takes_its_turn_at_failing() -> None:
    claims = [
        ledger_load.Claim(page_no=n, url="https://example.com/", depth=0, attempts=1, source="seed")
        for n in range(20)
    ]

    ends = [ledger_load.outcome(claim, 10).status for claim in claims]

    assert ends.count("failed") == 2
