"""A machine that asks a ledger and its model the same, move by move."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from accounting.budgets import BudgetRequest
from accounting.lots import Grant
from accounting.pricing import Terms
from accounting.reserving import Submission
from jobs.runs import Run
from tests.support import builders, moves, work
from tests.support.control_driver import ControlDriver
from tests.support.control_model import ControlledJob
from tests.support.ledger_model import GONE, TRANCHE_PAGES, Hold, Ledger

STEPS_A_PROOF = 10
RUNNING_JOBS = 8


class LedgerMachine(RuleBasedStateMachine):
    """Each rule asks the model and the real ledger the same, and compares what they say."""

    driver: ControlDriver

    def __init__(self) -> None:
        super().__init__()
        self.tenant_id = self.driver.a_tenant()
        self.model = Ledger()
        self.all_jobs: list[ControlledJob] = []
        self.runs: list[tuple[ControlledJob, Run]] = []
        self.submitted: dict[UUID, tuple[Submission, Terms]] = {}
        self.is_suspended = False
        self.steps = 0

    def set_out(self, credits: int, pages: int) -> None:
        for number, days in enumerate((None, 1, 2)):
            self.grant(100 + number, credits // 3, days, 50, "plan")
        options = {"is_rolling": pages > 10, "has_key": True}
        self.submit(pages, {"page": 1}, None, [], options)
        self.claim()

    @rule(
        op=moves.SMALL,
        amount=st.integers(1, 400),
        days=st.sampled_from([None, 1, 2, 3]),
        priority=st.sampled_from([10, 50]),
        source=st.sampled_from(["grant", "purchase"]),
    )
    def grant(self, op: int, amount: int, days: int | None, priority: int, source: Any) -> None:
        expiry = Ledger.expiry(days)
        wanted = Grant(
            amount=amount, source=source, op_key=f"op-{op}", expires_at=expiry, priority=priority
        )
        told, lot_id = self.driver.grant(self.tenant_id, wanted)
        assert told == self.model.grant(
            wanted.op_key, amount, source, lot_id=lot_id, days=days, priority=priority
        )

    @precondition(lambda self: self.model.lots)
    @rule(which=moves.SMALL)
    def a_lots_time_is_over(self, which: int) -> None:
        lot = list(self.model.lots.values())[which % len(self.model.lots)]
        lot.expires_at = GONE
        self.driver.age_lot(lot.lot_id, GONE)

    @rule(
        max_pages=st.sampled_from([1, 3, 10, 250]),
        prices=st.sampled_from(moves.PRICES),
        max_credits=st.sampled_from([None, None, 2, 20]),
        tags=st.lists(st.sampled_from(moves.TAGS), max_size=4),
        options=st.fixed_dictionaries(
            {
                "is_rolling": st.booleans(),
                "has_key": st.booleans(),
                "quote": st.sampled_from([None, None, None, None, "good", "late"]),
            }
        ),
    )
    def submit(
        self,
        max_pages: int,
        prices: dict[str, int],
        max_credits: int | None,
        tags: list[str],
        options: dict[str, Any],
    ) -> None:
        most = max_pages * max(prices.values())
        agreed = Terms(price_version=1, prices=prices, ceiling=min(most, max_credits or most))
        submission = builders.a_submission(
            self.tenant_id,
            max_pages=max_pages,
            max_credits=max_credits,
            tags=tags,
            reservation="rolling" if options["is_rolling"] else "full",
            idempotency_key=f"key-{len(self.all_jobs)}" if options["has_key"] else None,
        )
        is_late = options.get("quote") == "late"
        if options.get("quote"):
            submission = self.driver.quote(submission, agreed, is_late=is_late)
        first = TRANCHE_PAGES * max(prices.values()) if options["is_rolling"] else agreed.ceiling
        amount = min(agreed.ceiling, first)
        refused: Any = ("tenant_suspended", None)
        if not self.is_suspended:
            refused = self.model.refusal(builders.KEY_ID, tags, amount, is_late=is_late)
        word, told = self.driver.submit(submission, agreed)
        assert (word, moves.told_of(word, told)) == (refused or ("created", submission.job_id))
        if word == "created":
            self.begun(submission, agreed, amount)

    def begun(self, submission: Submission, agreed: Terms, amount: int) -> None:
        hold = Hold(agreed.ceiling, builders.KEY_ID, submission.request.tags)
        self.model.open(submission.job_id, amount, hold)
        job = ControlledJob(
            submission.job_id,
            self.model,
            hold,
            max_pages=submission.request.max_pages,
            max_credits=submission.request.max_credits,
            is_rolling=submission.request.reservation == "rolling",
            prices=agreed.prices,
            keys=[seed.key for seed in submission.seeds],
        )
        self.all_jobs.append(job)
        self.submitted[job.job_id] = submission, agreed

    @precondition(lambda self: self.all_jobs)
    @rule(which=moves.SMALL, how=st.sampled_from(["the same", "anew", "another body"]))
    def submit_again(self, which: int, how: str) -> None:
        job = self.all_jobs[-1 - which % len(self.all_jobs)]
        submission, agreed = self.submitted[job.job_id]
        if submission.idempotency_key is None:
            how = "the same"
        if how != "the same":
            submission = msgspec.structs.replace(submission, job_id=builders.ids.new_id())
        if how == "another body":
            request = msgspec.structs.replace(submission.request, max_depth=1)
            submission = msgspec.structs.replace(submission, request=request)
        word = {"the same": "created", "anew": "replayed"}.get(how, "idempotency_conflict")
        expected = ("tenant_suspended", None) if self.is_suspended else (word, job.job_id)
        told = self.driver.submit(submission, agreed)
        assert (told[0], moves.told_of(*told)) == expected

    @rule()
    def claim(self) -> None:
        busy = sum(job.is_busy for job in self.all_jobs)
        waiting = [job for job in self.all_jobs if job.may_be_claimed]
        run = self.driver.claim()
        if self.is_suspended or busy >= RUNNING_JOBS or not waiting:
            assert run is None
            return
        job = min(waiting, key=lambda one: (one.state != "running", self.all_jobs.index(one)))
        assert run is not None
        assert (run.lease.job_id, run.lease.token) == (job.job_id, job.claim())
        if job.is_overdue:
            # no time was left of it: the model knows no seconds, so they are made an hour
            self.driver.let_time_pass(job.job_id, "deadline_at")
        self.runs.append((job, run))

    def run_of(self, which: int) -> tuple[ControlledJob, Run]:
        """The newest runs are the smallest numbers; the old ones have lost their leases."""
        return self.runs[-1 - which % len(self.runs)]

    @precondition(lambda self: self.runs)
    @rule(which=moves.SMALL, limit=st.integers(0, 12), by_level=st.booleans())
    def pages(self, which: int, limit: int, by_level: bool) -> None:
        job, run = self.run_of(which)
        told = self.driver.pages(run, limit, by_level=by_level)
        assert told == job.claim_pages(run.lease.token, limit, by_level=by_level)

    @precondition(lambda self: self.runs)
    @rule(
        which=moves.SMALL,
        ends=st.lists(moves.OUTCOME, max_size=12),
        found=st.lists(moves.FOUND, max_size=12),
    )
    def settle(self, which: int, ends: list[Any], found: list[Any]) -> None:
        job, run = self.run_of(which)
        ends = list({number % (len(job.pages) + 1): word for number, word in ends}.items())
        links = [work.link(number, depth=depth, excluded=why) for number, depth, why in found]
        outcomes = [moves.outcome(number, word, job) for number, word in ends]
        assert self.driver.settle(run, outcomes, links) == job.settle(
            run.lease.token,
            [(number, *moves.state_of(word, job)) for number, word in ends],
            [(link.key, link.depth, link.excluded) for link in links],
        )

    @precondition(lambda self: self.runs)
    @rule(
        which=moves.SMALL,
        words=st.lists(st.sampled_from(moves.WORDS), min_size=1, max_size=10),
        found=st.lists(moves.FOUND, max_size=12),
    )
    def crawl(self, which: int, words: list[str], found: list[Any]) -> None:
        """A turn of a run that does as it should: discovery, pages, their ends."""
        job, _ = self.run_of(which)
        self.settle(which, [], found)
        self.pages(which, len(words), False)
        flying = [number for number, page in enumerate(job.pages) if page.state == "in_flight"]
        self.settle(which, list(zip(flying, words, strict=False)), [])

    @precondition(lambda self: self.runs)
    @rule(which=moves.SMALL, goes=st.sampled_from(["on", "on", "back", "silent", "silent"]))
    def a_run_goes(self, which: int, goes: str) -> None:
        job, run = self.run_of(which)
        if goes == "on":
            assert self.driver.top_up(run) == job.top_up(run.lease.token)
        elif goes == "back":
            assert self.driver.hand_back(run) == job.hand_back(run.lease.token)
        elif job.owner:
            job.lease_over = True
            self.driver.let_time_pass(job.job_id, "lease_until")

    @precondition(lambda self: self.runs)
    @rule(which=moves.SMALL, reason=st.sampled_from(moves.REASONS))
    def finish(self, which: int, reason: str) -> None:
        job, run = self.run_of(which)
        expected = job.finish(run.lease.token, reason, run.extensions)
        assert self.driver.finish(run, reason) == expected

    @precondition(lambda self: self.all_jobs)
    @rule(which=moves.SMALL, ends=st.sampled_from(["cancel", "time"]))
    def a_job_is_stopped(self, which: int, ends: str) -> None:
        job = self.all_jobs[which % len(self.all_jobs)]
        if ends == "cancel":
            assert self.driver.cancel(self.tenant_id, job.job_id) == job.cancel()
        elif job.reason is None:
            job.is_overdue = True
            self.driver.let_time_pass(job.job_id, "queue_limit_at", "deadline_at")

    @rule(duty=st.sampled_from(["sweep", "free", "free", "expire", "suspend or not"]))
    def a_process_does_its_duty(self, duty: str) -> None:
        match duty:
            case "sweep":
                ended = {job.job_id: job.sweep() for job in self.all_jobs}
                assert self.driver.sweep() == {name: why for name, why in ended.items() if why}
            case "free":
                assert self.driver.free() == {job.job_id for job in self.all_jobs if job.free()}
            case "expire":
                assert self.driver.expire(self.tenant_id) == self.model.expire()
            case _:
                self.is_suspended = not self.is_suspended
                self.driver.set_status(self.tenant_id, ["active", "suspended"][self.is_suspended])

    @rule(
        node=st.sampled_from(["tenant", "key", "tag"]),
        cap=st.sampled_from([0, 5, 50, 300, 900]),
        period=st.sampled_from(["month", "total"]),
        tag=st.sampled_from(moves.TAGS),
    )
    def put_budget(self, node: Any, cap: int, period: Any, tag: str) -> None:
        subject = {"tenant": "", "key": builders.KEY_ID, "tag": tag}[node]
        wanted = BudgetRequest(node=node, subject=subject, period=period, cap=cap)
        self.model.put_budget(
            self.driver.put_budget(self.tenant_id, wanted), node, subject, period, cap
        )

    @precondition(lambda self: self.model.budgets)
    @rule(which=moves.SMALL)
    def remove_budget(self, which: int) -> None:
        name = list(self.model.budgets)[which % len(self.model.budgets)]
        self.driver.remove_budget(self.tenant_id, self.model.budgets.pop(name).budget_id)

    @property
    def observed(self) -> dict[str, Any]:
        balance = self.driver.balance(self.tenant_id)
        return {
            "balance": {name: balance[name] for name in self.model.balance},
            "jobs": {
                job.job_id: self.driver.status(self.tenant_id, job.job_id, list(job.status))
                for job in self.all_jobs
            },
            "lives": self.driver.lives(self.tenant_id),
            "budgets": self.driver.budgets(self.tenant_id),
            "pages": self.driver.page_rows(self.tenant_id),
        }

    @staticmethod
    def predicted(model: Ledger, all_jobs: Sequence[ControlledJob]) -> dict[str, Any]:
        return {
            "balance": model.balance,
            "jobs": {job.job_id: job.status for job in all_jobs},
            "lives": {job.job_id: job.life for job in all_jobs},
            "budgets": model.budget_lines,
            "pages": sorted(row for job in all_jobs for row in job.page_rows),
        }

    @invariant()
    def everything_is_as_the_model_says(self) -> None:
        assert self.observed == self.predicted(self.model, self.all_jobs)
        self.steps += 1
        assert self.steps % STEPS_A_PROOF or self.driver.violations() == []

    def teardown(self) -> None:
        self.driver.run(work.end_all(self.driver.system))
        assert self.driver.violations() == []
