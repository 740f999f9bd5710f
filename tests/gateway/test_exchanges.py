"""What wraps every request: a caller who does not send its body counts as gone."""

import asyncio

import pytest

from gateway import exchanges


async def test_a_body_that_does_not_come_ends_as_a_disconnect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchanges, "BODY_SECONDS", 0.01)

    async def never() -> object:
        await asyncio.Event().wait()

    assert await exchanges.in_time(never)() == {"type": "http.disconnect"}


async def test_after_the_whole_body_a_caller_may_be_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exchanges, "BODY_SECONDS", 0.0)
    messages = [{"type": "http.request", "body": b"x", "more_body": False}]
    gone = asyncio.Event()

    async def receive() -> dict:
        if messages:
            return messages.pop()
        await gone.wait()
        return {"type": "http.disconnect"}

    receiving = exchanges.in_time(receive)
    assert (await receiving())["body"] == b"x"
    waiting = asyncio.create_task(receiving())
    gone.set()
    assert (await waiting)["type"] == "http.disconnect"
