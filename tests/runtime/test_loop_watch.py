"""A held-up event loop is told of, and a process that stays so ends; a frozen one does not."""

import asyncio
import subprocess
import sys
import textwrap
import threading

from structlog.testing import capture_logs

from runtime.loop_watch import STUCK_EXIT, TICK_SECONDS, LoopWatch
from tests.support.processes import ROOT

STUCK = """
    import asyncio
    import threading
    from runtime.loop_watch import LoopWatch

    def hold_everything_up():
        threading.Event().wait()

    async def main():
        with LoopWatch(patience_seconds=1.5):
            hold_everything_up()

    asyncio.run(main())
"""


class Ended:
    """Takes the exit codes that would end this process."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.once = threading.Event()

    def __call__(self, code: int) -> None:
        self.codes.append(code)
        self.once.set()


def hold_up_until(event: threading.Event) -> None:
    assert event.wait(60)


async def test_a_call_that_holds_the_loop_up_is_named() -> None:
    ended = Ended()
    with capture_logs() as logs, LoopWatch(3 * TICK_SECONDS, end=ended):
        hold_up_until(ended.once)
    told = [entry for entry in logs if entry["event"].startswith("loop_")]
    assert [entry["event"] for entry in told][:2] == ["loop_blocked", "loop_stuck"]
    assert all("hold_up_until" in entry["where"] for entry in told[:2])
    assert set(ended.codes) == {STUCK_EXIT}


async def test_a_loop_that_answers_is_left_alone() -> None:
    ended = Ended()
    watch = LoopWatch(3 * TICK_SECONDS, end=ended)
    with capture_logs() as logs, watch:
        for _ in range(20):
            await asyncio.sleep(0)
            watch.look()
    assert (ended.codes, [one for one in logs if one["event"] != "loop_goes_on"]) == ([], [])


def test_a_stuck_process_ends_and_says_where_it_stood() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(STUCK)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == STUCK_EXIT
    assert "hold_everything_up" in done.stdout + done.stderr
