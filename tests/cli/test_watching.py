"""How long the watcher waits, and how it takes a Ctrl-C."""

import signal

import httpx
import pytest

from cli import watching
from cli.watching import Interrupts


@pytest.mark.parametrize(
    ("retry_after", "seconds"),
    [("0", 0.0), ("0.5", 0.5), ("1", 1.0), ("300", 1.0), ("-3", 0.0), ("soon", 1.0), (None, 1.0)],
)
def test_retry_after_is_honoured_up_to_a_second(retry_after: str | None, seconds: float) -> None:
    headers = {} if retry_after is None else {"Retry-After": retry_after}

    assert watching.pause_of(httpx.Response(200, headers=headers)) == seconds


def test_the_first_interrupt_is_noted_and_the_second_interrupts() -> None:
    before = signal.getsignal(signal.SIGINT)

    with Interrupts() as interrupts:
        assert not interrupts.asked
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)

    assert signal.getsignal(signal.SIGINT) is before
