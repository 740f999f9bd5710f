"""The end of a task: certain, whatever the library below it makes of a cancellation."""

import asyncio

import pytest

from runtime import loops


async def idle() -> None:
    await asyncio.Event().wait()


async def swallowing(times: int) -> None:
    """What a client library does that takes a cancellation for its own timeout's."""
    for _ in range(times):
        try:
            await idle()
        except asyncio.CancelledError:
            continue
    await idle()


async def started(*tasks: "asyncio.Task[None]") -> None:
    assert tasks
    await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def soon_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "CANCEL_AGAIN_SECONDS", 0.01)


@pytest.mark.parametrize("times", [0, 1, 3])
async def test_a_task_ends_that_swallows_its_cancellation(times: int) -> None:
    task = asyncio.create_task(swallowing(times))
    other = asyncio.create_task(idle())
    await started(task, other)

    raised = await loops.end(task, other)

    assert raised == []
    assert task.cancelled()
    assert other.cancelled()


async def test_what_ended_tasks_raised_is_told() -> None:
    async def failing() -> None:
        try:
            await idle()
        finally:
            raise OSError("on the way out")

    before = asyncio.create_task(asyncio.sleep(0))
    task = asyncio.create_task(failing())
    await started(before, task)

    raised = await loops.end(before, task)

    assert [str(error) for error in raised] == ["on the way out"]


async def test_nothing_to_end_is_ended() -> None:
    assert await loops.end() == []
