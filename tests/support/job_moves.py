"""What may be done to a job's life: each as a real job and as the model's is asked."""

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any, NamedTuple
from uuid import UUID

from jobs.runs import Run
from tests.support import moves
from tests.support.control_driver import ControlDriver
from tests.support.control_model import ControlledJob

PAGES_A_CALL = 3


class Move(NamedTuple):
    """One call."""

    real: Callable[[ControlDriver], Any]
    model: Callable[[ControlledJob], Any]
    may_pass_over: bool = False
    """It leaves alone what somebody else holds locked, and tells nothing then."""


class Asked(NamedTuple):
    """Of whom it is asked, and what."""

    tenant_id: UUID
    job: ControlledJob
    is_suspended: bool
    run: Run | None = None
    pages: int = 1
    credits: int | None = None

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.tenant_id, self.job.job_id

    @property
    def token(self) -> int:
        return self.its_run.lease.token

    @property
    def its_run(self) -> Run:
        assert self.run is not None, "only a run can be asked this"
        return self.run


def cancel(asked: Asked) -> Move:
    return Move(lambda it: it.cancel(*asked.ids), lambda job: job.cancel())


def pause(asked: Asked) -> Move:
    return Move(lambda it: it.pause(*asked.ids), lambda job: job.pause())


def resume(asked: Asked) -> Move:
    return Move(lambda it: it.resume(*asked.ids), lambda job: job.resume())


def extend(asked: Asked) -> Move:
    return Move(
        lambda it: it.extend(*asked.ids, asked.pages, asked.credits),
        lambda job: job.extend(asked.pages, asked.credits, is_suspended=asked.is_suspended),
    )


def sweep(asked: Asked) -> Move:
    job_id = asked.job.job_id
    return Move(lambda it: it.sweep().get(job_id), lambda job: job.sweep(), may_pass_over=True)


def free(asked: Asked) -> Move:
    job_id = asked.job.job_id
    return Move(
        lambda it: job_id in it.free() or None, lambda job: job.free() or None, may_pass_over=True
    )


def finish(asked: Asked) -> Move:
    reason = "frontier_exhausted"
    return Move(
        lambda it: it.finish(asked.its_run, reason),
        lambda job: job.finish(asked.token, reason, asked.its_run.extensions),
    )


def settle(asked: Asked) -> Move:
    pages = enumerate(asked.job.pages)
    flying = [number for number, page in pages if page.state == "in_flight"][:PAGES_A_CALL]
    outcomes = [moves.outcome(number, "page", asked.job) for number in flying]
    ends = [(number, "succeeded", "page") for number in flying]
    return Move(
        lambda it: it.settle(asked.its_run, outcomes, []),
        lambda job: job.settle(asked.token, ends, []),
    )


def take(asked: Asked) -> Move:
    return Move(
        lambda it: it.pages(asked.its_run, PAGES_A_CALL, by_level=False),
        lambda job: job.claim_pages(asked.token, PAGES_A_CALL, by_level=False),
    )


def top_up(asked: Asked) -> Move:
    return Move(lambda it: it.top_up(asked.its_run), lambda job: job.top_up(asked.token))


def hand_back(asked: Asked) -> Move:
    return Move(lambda it: it.hand_back(asked.its_run), lambda job: job.hand_back(asked.token))


def end_pause(asked: Asked) -> Move:
    return Move(lambda it: it.end_pause(asked.its_run), lambda job: job.end_pause(asked.token))


def wait_for_credits(asked: Asked) -> Move:
    return Move(
        lambda it: it.pause_for_budget(asked.its_run),
        lambda job: job.pause_for_budget(asked.token, asked.its_run.extensions),
    )


MOVES = {
    move.__name__: move
    for move in (
        cancel,
        pause,
        resume,
        extend,
        sweep,
        free,
        finish,
        settle,
        take,
        top_up,
        hand_back,
        end_pause,
        wait_for_credits,
    )
}
NEEDS_NO_RUN = {"cancel", "pause", "resume", "extend", "sweep", "free"}


def orders(may_be_left_out: Sequence[bool]) -> Iterator[list[int]]:
    """In which order calls may have come, without those that may have done nothing."""
    for order in permutations(range(len(may_be_left_out))):
        choices = [[True, False] if may_be_left_out[number] else [True] for number in order]
        for done in product(*choices):
            yield [number for number, is_done in zip(order, done, strict=True) if is_done]
