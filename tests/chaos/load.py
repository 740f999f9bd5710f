"""A customer who submits, pauses, resumes, extends, cancels, retries, whatever happens."""

import random
import time
from collections import Counter
from typing import Any

import httpx

from jobs import progress as counters
from jobs.records import Progress
from runtime import clock
from tests.support.whole import Whole

PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.05
FINAL = {"succeeded", "failed", "cancelled"}
CONTROLS = ("pause", "resume", "extend", "cancel", "retry")
OUTAGE = 503


class Violation(AssertionError):
    """The system did what it promises never to do."""


class Customer:
    """Makes calls until they are answered; only a 503 with Retry-After may come in between."""

    def __init__(self, whole: Whole, chance: random.Random, url: str) -> None:
        self._whole = whole
        self._chance = chance
        self._url = url
        self.jobs: list[str] = []
        self.calls: Counter[str] = Counter()

    def act(self) -> None:
        """One call of the mixed load."""
        if not self.jobs or self._chance.random() < 0.3:
            self.submit()
        elif self._chance.random() < 0.4:
            self.look(self._chance.choice(self.jobs))
        else:
            self.control(self._chance.choice(CONTROLS), self._chance.choice(self.jobs))

    def submit(self) -> None:
        """A job of its own, however often the call must be made."""
        body = {
            "url": self._url,
            "max_pages": self._chance.randint(5, 40),
            "timeout_seconds": 600,
            "priority": self._chance.randint(0, 100),
            "reservation": self._chance.choice(["full", "rolling"]),
        }
        key = f"chaos-{len(self.jobs)}-{self._chance.getrandbits(32)}"
        answer = self.ask("POST", "/v1/crawls", json=body, headers={"Idempotency-Key": key})
        self.jobs.append(answer.json()["job_id"])

    def control(self, what: str, job_id: str) -> None:
        """May come too late for its job, and then says so."""
        if what == "cancel":
            self.ask("DELETE", f"/v1/jobs/{job_id}")
            return
        body = {"max_pages": self._chance.randint(5, 60)} if what == "extend" else None
        answer = self.ask("POST", f"/v1/jobs/{job_id}/{what}", json=body)
        if what == "retry" and answer.status_code == 202:
            made = answer.json()["job_id"]
            self.jobs += [made] if made not in self.jobs else []

    def look(self, job_id: str) -> dict[str, Any]:
        """The job's status; its sums hold at every instant."""
        job: dict[str, Any] = self.ask("GET", f"/v1/jobs/{job_id}").json()
        usage = job["usage"]
        if not counters.adds_up(Progress(**job["progress"])):
            raise Violation(f"the counters of {job_id} do not add up: {job['progress']}")
        if usage["credits_charged"] != job["progress"]["succeeded"]:
            raise Violation(f"{job_id} is charged other than its pages: {job}")
        if usage["credits_charged"] + usage["credits_released"] > usage["credits_reserved"]:
            raise Violation(f"{job_id} moved more than was reserved: {usage}")
        return job

    def end(self, job_id: str) -> dict[str, Any]:
        """Waits for the job's end; what is paused goes on first."""
        deadline = clock.monotonic() + PATIENCE_SECONDS
        while (job := self.look(job_id))["state"] not in FINAL:
            if clock.monotonic() > deadline:
                raise Violation(f"{job_id} does not end: {job}")
            if job["state"] in {"paused", "pausing"}:
                self.control("resume", job_id)
            time.sleep(LOOK_SECONDS)
        return job

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The call's answer, asked for again while the system is away."""
        self.calls[f"{method} {path.split('/')[2]}"] += 1
        deadline = clock.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                answer = self._whole.http.request(method, path, **options)
            except httpx.TransportError as error:
                said = repr(error)
            else:
                if answer.status_code < 500:
                    if answer.status_code in {400, 401, 403, 404, 422}:
                        raise Violation(f"{method} {path}: {answer.status_code} {answer.text}")
                    return answer
                if answer.status_code != OUTAGE or "retry-after" not in answer.headers:
                    raise Violation(f"{method} {path}: {answer.status_code} {answer.text}")
                said = answer.text
            if clock.monotonic() > deadline:
                raise Violation(f"{method} {path} is not answered: {said}")
            time.sleep(LOOK_SECONDS)
