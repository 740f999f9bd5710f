"""A customer who submits, pauses, resumes, extends, cancels, retries, whatever happens."""

import itertools
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import httpx

from jobs import progress as counters
from jobs.records import Progress
from runtime import clock
from tests.chaos.town import Town

PATIENCE_SECONDS = 120.0
LOOK_SECONDS = 0.05
FINAL = {"succeeded", "failed", "cancelled"}
CONTROLS = ("pause", "resume", "extend", "cancel", "retry")
OUTAGE = 503
REFUSED = {400, 401, 403, 404, 422, 429}
TWINS = 4
"""So many make one and the same call at once, now and then."""
CALL_SECONDS = 15.0


class Violation(AssertionError):
    """The system did what it promises never to do."""


class Customer:
    """Makes calls until they are answered; only a 503 with Retry-After may come in between."""

    def __init__(self, town: Town, chance: random.Random) -> None:
        self._town = town
        self._chance = chance
        self._url = town.site.base + "/"
        self._ports = itertools.cycle(wire.port for wire in town.gateways)
        self.tenant_id, key = town.a_customer()
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"}, timeout=CALL_SECONDS, trust_env=False
        )
        self.jobs: list[str] = []
        self.calls: Counter[str] = Counter()

    def close(self) -> None:
        self._http.close()

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
        headers = {"Idempotency-Key": key}
        made = {one.json()["job_id"] for one in self.ask_often("POST", "/v1/crawls", body, headers)}
        if len(made) != 1:
            raise Violation(f"one key has made {len(made)} jobs: {made}")
        self._remember(made.pop())

    def control(self, what: str, job_id: str) -> None:
        """May come too late for its job, and then says so."""
        if what == "cancel":
            self.ask_often("DELETE", f"/v1/jobs/{job_id}")
            return
        body = {"max_pages": self._chance.randint(5, 60)} if what == "extend" else None
        answer = self.ask("POST", f"/v1/jobs/{job_id}/{what}", json=body)
        if what == "retry" and answer.status_code == 202:
            self._remember(answer.json()["job_id"])

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

    def ask_often(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
    ) -> list[httpx.Response]:
        """The same call, sometimes by several at once, as clients do that do not trust a wire."""
        twins = TWINS if self._chance.random() < 0.25 else 1
        with ThreadPoolExecutor(twins) as crowd:
            asked = [
                crowd.submit(self.ask, method, path, json=body, headers=headers)
                for _ in range(twins)
            ]
        return [one.result() for one in asked]

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """The call's answer, asked for again, at the next gateway, while one is away."""
        self.calls[f"{method} {path.split('/')[2]}"] += 1
        deadline = clock.monotonic() + PATIENCE_SECONDS
        while True:
            url = f"http://127.0.0.1:{next(self._ports)}{path}"
            try:
                answer = self._http.request(method, url, **options)
            except httpx.TransportError as error:
                said = repr(error)
            else:
                if answer.status_code in REFUSED:
                    raise Violation(f"{method} {path}: {answer.status_code} {answer.text}")
                if answer.status_code < 500:
                    return answer
                if answer.status_code != OUTAGE or "retry-after" not in answer.headers:
                    raise Violation(f"{method} {path}: {answer.status_code} {answer.text}")
                said = answer.text
            if clock.monotonic() > deadline:
                raise Violation(f"{method} {path} is not answered: {said}")
            time.sleep(LOOK_SECONDS)

    def _remember(self, job_id: str) -> None:
        if job_id not in self.jobs:
            self.jobs.append(job_id)
            self._town.jobs.append(UUID(job_id))
