"""Measures the ledger: whole job lives of one tenant, reserves on one row, and its proof."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec
import uvloop

from benchmarks import ledger_history, ledger_load, pgbench, whole_system
from benchmarks.ledger_load import Life, Mix
from migrations import schema
from runtime import database
from runtime.database import Database
from runtime.embedded.postgres import OWNER, SYSTEM, EmbeddedPostgres
from tests.support.database import administer

NAME = "bench_ledger"
MIXES = {
    "25 a flush, all succeed": Mix(batch=25),
    "25 a flush, 10 % fail": Mix(batch=25, fails_every=10),
    "50 a flush, all succeed": Mix(batch=50),
    "50 a flush, 10 % fail": Mix(batch=50, fails_every=10),
}
WARM_UP = Mix(batch=25, jobs=1, pages=100)
QUICK = {"pages": 50, "jobs": 1, "workers": 2}
CONNECTIONS = 16
LOG_SEGMENTS = 24
"""Files of the write-ahead log, of 16 MB, that are there before the loads begin."""
CALLERS = 32
MILLION = 1_000_000
HEAD = (
    "| load | charged pages/s | flush p50 ms | flush p99 ms | reserve p50 | finish p50 |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Everything one run measured; pgbench's rate is None where there is no pgbench."""

    lives: dict[str, Life]
    reserves: float
    reserve_times: list[float]
    pgbench: float | None
    proof: dict[str, float]
    pages: int

    @property
    def proof_per_million(self) -> float:
        return sum(self.proof.values()) * MILLION / self.pages


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a smoke run of seconds")
    parser.add_argument("--history", type=int, default=200_000, help="pages to prove (200000)")
    parser.add_argument("--seconds", type=int, default=5, help="of each reserve load (5)")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        chosen.history, chosen.seconds = 1_000, 1
    with whole_system.folder() as place:
        print(table(measure(place, chosen.history, chosen.seconds, quick=chosen.quick)))


def measure(place: Path, history: int, seconds: int, *, quick: bool) -> Figures:
    """All loads on a new server at its default durability, in a folder that it may enter."""
    server = EmbeddedPostgres(place / "servers", [f"min_wal_size={LOG_SEGMENTS * 16}MB"])
    server.start()
    try:
        administer(server, f"CREATE DATABASE {NAME} OWNER {OWNER}")
        schema.upgrade(server.url(OWNER, NAME))
        return uvloop.run(_measured(server, history, seconds, quick=quick))
    finally:
        server.stop()


async def _measured(
    server: EmbeddedPostgres, history: int, seconds: int, *, quick: bool
) -> Figures:
    system = Database(server.url(SYSTEM, NAME), role=database.SYSTEM, size=CONNECTIONS)
    await system.open()
    try:
        tenant_id = await ledger_load.a_tenant(system)
        # Statistics as autovacuum would have made them, of a first load that does not count.
        await ledger_load.whole_lives(system, tenant_id, WARM_UP)
        await _analyze(server)
        await _age(server)
        lives = {}
        for name, mix in MIXES.items():
            load = msgspec.structs.replace(mix, **QUICK) if quick else mix
            lives[name] = await ledger_load.whole_lives(system, tenant_id, load)
        rate, times = await ledger_load.hot_reserves(
            system, tenant_id, callers=CALLERS, seconds=seconds
        )
        limit = await _limit(server, seconds)
        await ledger_history.write(system, history)
        await _analyze(server)
        proof, pages = await ledger_history.proof_seconds(system)
    finally:
        await system.close()
    return Figures(
        lives=lives, reserves=rate, reserve_times=times, pgbench=limit, proof=proof, pages=pages
    )


async def _limit(server: EmbeddedPostgres, seconds: int) -> float | None:
    if pgbench.program() is None:
        return None
    await pgbench.prepare(server.url(database=NAME))
    return await asyncio.to_thread(
        pgbench.guarded_updates, server.url(database=NAME), seconds=seconds
    )


async def _age(server: EmbeddedPostgres) -> None:
    """A server that has been up overwrites old files of its log; a new one has to make them."""
    connection = await database.connect(server.url(database=NAME))
    try:
        for _ in range(LOG_SEGMENTS):
            await connection.execute("SELECT pg_logical_emit_message(false, 'bench', 'x')")
            await connection.execute("SELECT pg_switch_wal()")
        await connection.execute("CHECKPOINT")
    finally:
        await connection.close()


async def _analyze(server: EmbeddedPostgres) -> None:
    """Without statistics any index seems as good as any other, and a minute passes before some."""
    connection = await database.connect(server.url(database=NAME))
    try:
        await connection.execute("VACUUM ANALYZE")
    finally:
        await connection.close()


def table(figures: Figures) -> str:
    rows = [HEAD, *(_row(name, life) for name, life in figures.lives.items()), ""]
    waits = sorted(figures.reserve_times)
    rows.append(
        f"- reserve on one row, {CALLERS} callers at once: {figures.reserves:.0f}/s,"
        f" p50 {waits[len(waits) // 2]:.1f} ms, p99 {waits[len(waits) * 99 // 100]:.1f} ms"
    )
    if figures.pgbench is None:
        rows.append("- pgbench was not found")
    else:
        share = figures.reserves / figures.pgbench
        rows.append(
            f"- pgbench, guarded update and insert, {pgbench.CLIENTS} clients, one row:"
            f" {figures.pgbench:.0f}/s; ours is {share:.2f} of it"
        )
    rows.append(
        f"- proof of {figures.pages:,} pages: {sum(figures.proof.values()):.2f} s,"
        f" {figures.proof_per_million:.2f} s per million pages; longest:"
    )
    longest = sorted(figures.proof.items(), key=lambda one: -one[1])[:5]
    rows += [f"  - {name}: {seconds * 1000:.0f} ms" for name, seconds in longest]
    return "\n".join(rows)


def _row(name: str, life: Life) -> str:
    flush = [life.percentile("flush", percent) for percent in (50, 99)]
    others = [life.percentile(step, 50) for step in ("reserve", "finish")]
    return (
        f"| {name} | {life.charged_a_second:.0f} | {flush[0]:.1f} | {flush[1]:.1f}"
        f" | {others[0]:.1f} | {others[1]:.1f} |"
    )


if __name__ == "__main__":
    main()
