"""Any moves of credits and jobs go as a model predicts, two at once included."""

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, run_state_machine_as_test

from jobs.lifecycle import FOLLOWERS
from jobs.runs import Run
from tests.support import job_moves, moves
from tests.support.control_driver import LOST, Arena, ControlDriver
from tests.support.control_model import ControlledJob
from tests.support.database import DatabaseUrls
from tests.support.job_moves import Asked, Move
from tests.support.ledger_machine import LedgerMachine

PAGES = st.sampled_from([1, 3, 10, 30, 250])
CREDITS = st.sampled_from([None, 2, 50, 1_000])
RACERS = st.tuples(*[st.sampled_from(list(job_moves.MOVES))] * 2)
DUTIES = ["sweep", "free"]
TIMES = ["its pause lasts too long", "it has no time left", "its run is silent"]
CHANCE = st.lists(
    st.sampled_from([*job_moves.MOVES, "pause", "resume", "claim", "claim", *TIMES]),
    min_size=3,
    max_size=9,
)
A_PAGE = ["claim", "take", "settle"]
STORIES = [
    [*A_PAGE, "pause", "it has no time left", "sweep"],
    [*A_PAGE, "pause", "end_pause", "resume", "it has no time left", "sweep"],
    [*A_PAGE, "finish"],
    ["claim", "finish"],
    ["claim", "pause", "it has no time left", "sweep"],
    ["claim", "pause", "its run is silent", "cancel"],
    ["claim", "pause", "cancel", "finish"],
    ["claim", "pause", "resume", "wait_for_credits"],
    ["claim", "its run is silent", "cancel"],
    ["claim", "cancel", "sweep", "finish"],
    ["hand_back", "pause", "its pause lasts too long", "sweep"],
    ["pause", "end_pause", "resume", "it has no time left", "sweep"],
    ["pause", "end_pause", "resume", "cancel"],
    ["pause", "end_pause", "resume", "pause", "resume", "claim"],
]
"""Every arrow of the table, some of which chance would seldom draw."""
FATE = st.one_of(st.sampled_from(STORIES), CHANCE)
TABLE = {(before, after) for before, afters in FOLLOWERS.items() for after in afters}


class LifeMachine(LedgerMachine):
    """The ledger's moves, and all that may happen to a job's life, alone and at the same time."""

    arena: Arena
    seen: Counter[tuple[str, str]]
    """How often a job went from one state to another, over all histories."""

    def __init__(self) -> None:
        super().__init__()
        self.states: dict[UUID, str] = {}

    @initialize(
        credits=st.sampled_from([40, 400, 3_000, 3_000]),
        pages=st.sampled_from([10, 250]),
        fate=FATE,
    )
    def begin(self, credits: int, pages: int, fate: list[str]) -> None:
        self.set_out(credits, pages)
        if self.all_jobs:
            self.a_job_lives_on(0, fate, 1, None)

    def move(self, name: str, job: ControlledJob, run: Run | None = None, **limits: Any) -> Move:
        asked = Asked(
            tenant_id=self.tenant_id, job=job, run=run, is_suspended=self.is_suspended, **limits
        )
        return job_moves.MOVES[name](asked)

    @precondition(lambda self: self.all_jobs)
    @rule(which=moves.SMALL, fate=CHANCE, pages=PAGES, credits=CREDITS)
    def a_job_lives_on(self, which: int, fate: list[str], pages: int, credits: int | None) -> None:
        """Several moves of one job, one after the other; the newest jobs are the first."""
        job = self.all_jobs[-1 - which % len(self.all_jobs)]
        for name in fate:
            self.befall(job, name, pages=pages, credits=credits)
            self.states_are_counted()

    def befall(self, job: ControlledJob, name: str, **limits: Any) -> None:
        run = next((run for of, run in reversed(self.runs) if of is job), None)
        if name in DUTIES:
            self.a_process_does_its_duty(name)
        elif name == "claim":
            self.claim()
        elif name in TIMES:
            self.time_passes(job, name)
        elif run is not None or name in job_moves.NEEDS_NO_RUN:
            move = self.move(name, job, run, **limits)
            assert move.real(self.driver) == move.model(job)

    def time_passes(self, job: ControlledJob, name: str) -> None:
        match name:
            case "its pause lasts too long" if job.state == "paused":
                job.pause_is_over = True
                self.driver.let_time_pass(job.job_id, "paused_at", interval="8 days")
            case "it has no time left" if job.reason is None:
                job.is_overdue = True
                self.driver.let_time_pass(job.job_id, "queue_limit_at", "deadline_at")
            case "its run is silent" if job.owner:
                job.lease_over = True
                self.driver.let_time_pass(job.job_id, "lease_until")
            case _:
                return

    @rule()
    def who_waits_for_credits_goes_on(self) -> None:
        waiting = [] if self.is_suspended else self.all_jobs
        expected = {job.job_id for job in waiting if job.resume_funded()}
        assert self.driver.resume_funded() == expected

    @precondition(lambda self: self.runs)
    @rule(which=moves.SMALL, names=RACERS, cut=st.booleans(), pages=PAGES, credits=CREDITS)
    def race(
        self, which: int, names: tuple[str, str], cut: bool, pages: int, credits: int | None
    ) -> None:
        """Both answers, and all that is left behind, are those of one after the other."""
        job, run = self.run_of(which)
        self.nothing_is_due_but(job)
        self.states_are_counted()
        both = [self.move(name, job, run, pages=pages, credits=credits) for name in names]
        told = self.arena.race(job.job_id, [move.real for move in both], cut=cut)
        optional = [
            move.may_pass_over or answer == LOST for move, answer in zip(both, told, strict=True)
        ]
        left = self.observed
        worlds = [self.after(job, both, order) for order in job_moves.orders(optional)]
        for answers, world in worlds:
            is_told = all(
                answer in (LOST, answers.get(number)) for number, answer in enumerate(told)
            )
            if is_told and left == self.predicted(*world[:2]):
                self.model, self.all_jobs, self.runs = world
                # two steps may have been one sight
                self.states = {one.job_id: one.state for one in self.all_jobs}
                return
        raise AssertionError(f"{names} at once: {told} is none of {worlds}")

    def after(self, job: ControlledJob, both: Sequence[Move], order: Sequence[int]) -> Any:
        """What the calls are told in this order, and the world that they leave."""
        world = copy.deepcopy((self.model, self.all_jobs, self.runs))
        same = next(one for one in world[1] if one.job_id == job.job_id)
        return {number: both[number].model(same) for number in order}, world

    def nothing_is_due_but(self, job: ControlledJob) -> None:
        """Sweeps look at every job: what they do to the others is no part of a race."""
        others = [one for one in self.all_jobs if one is not job]
        freed = self.arena.aside(job.job_id, lambda driver: driver.free())
        assert freed == {one.job_id for one in others if one.free()}
        swept = self.arena.aside(job.job_id, lambda driver: driver.sweep())
        assert swept == {one.job_id: why for one in others if (why := one.sweep())}

    @invariant()
    def states_are_counted(self) -> None:
        for job in self.all_jobs:
            before = self.states.get(job.job_id, job.state)
            self.states[job.job_id] = job.state
            if before != job.state:
                self.seen[before, job.state] += 1


@pytest.fixture(scope="module")
def machine(database_urls: DatabaseUrls) -> Iterator[type[LifeMachine]]:
    driver = ControlDriver(database_urls.system)
    try:
        with Arena(database_urls.system) as arena:
            own = {"driver": driver, "arena": arena, "seen": Counter()}
            yield type("LifeMachineOfThisDatabase", (LifeMachine,), own)
    finally:
        driver.close()


def test_every_transition_of_the_table_is_one_of_the_models(machine: type[LifeMachine]) -> None:
    for story in STORIES:
        told = machine()
        told.begin(400, 10, story)
        told.everything_is_as_the_model_says()
        told.teardown()
    assert set(machine.seen) == TABLE


@pytest.mark.slow
@pytest.mark.timeout(7_200 if moves.IS_LONG else 600)
def test_any_sequence_of_moves_goes_as_the_model_says(
    machine: type[LifeMachine], record_property: Callable[[str, object], None]
) -> None:
    machine.seen.clear()
    run_state_machine_as_test(machine, settings=moves.SETTINGS)
    assert set(machine.seen) <= TABLE
    record_property("transitions", dict(machine.seen))
