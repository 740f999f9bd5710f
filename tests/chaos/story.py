"""One seeded schedule of faults over a mixed load, and what must be true afterwards."""

import random
from collections import Counter
from typing import Any

import msgspec

from tests.chaos.faults import Injector
from tests.chaos.load import Customer, Violation
from tests.chaos.town import Town

ACTS_A_FAULT = 4
TRIES = 3
"""How often a page is asked for that a site does not answer."""
HARMLESS = ("clock", "messages")
"""Kinds of faults that cost no page a second fetch."""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What one schedule did; without an exception nothing was violated."""

    seed: int
    faults: dict[str, int]
    calls: dict[str, int]
    jobs: dict[str, int]
    pages: int
    credits: int


def tell(town: Town, seed: int, *, faults: int) -> Report:
    """A new customer's calls among so many faults, the same for the same seed; raises Violation."""
    chance = random.Random(seed)
    before = town.site.asked()
    customer = Customer(town, random.Random(chance.random()))
    injector = Injector(town, random.Random(chance.random()))
    try:
        for _ in range(faults):
            for _ in range(ACTS_A_FAULT):
                customer.act()
            injector.inject()
    finally:
        injector.close()
    ended = [customer.end(job_id) for job_id in customer.jobs]
    _check_bills(customer, ended)
    _check_pages(customer)
    _check_visits(customer, injector, town.site.asked() - before)
    _check_operator(town, customer)
    customer.close()
    return Report(
        seed=seed,
        faults=dict(injector.injected),
        calls=dict(customer.calls),
        jobs=dict(Counter(job["state"] for job in ended)),
        pages=sum(job["progress"]["succeeded"] for job in ended),
        credits=sum(job["usage"]["credits_charged"] for job in ended),
    )


def _check_bills(customer: Customer, ended: list[dict[str, Any]]) -> None:
    for job in ended:
        usage = job["usage"]
        left = usage["credits_reserved"] - usage["credits_charged"] - usage["credits_released"]
        if left or usage["settlement_pending"]:
            raise Violation(f"the hold of {job['job_id']} is not settled: {usage}")
        if job["completion_reason"] in {None, "internal_failure"}:
            raise Violation(f"{job['job_id']} ended wrongly: {job}")
    credits = customer.ask("GET", "/v1/credits").json()
    charged = credits["charged"]["lifetime"]
    if credits["held"] or credits["available"] + charged != credits["granted"]:
        raise Violation(f"the balance does not add up: {credits}")
    if charged != sum(job["usage"]["credits_charged"] for job in ended):
        raise Violation(f"{charged} credits are charged, and the jobs tell of others")


def _check_pages(customer: Customer) -> None:
    """Each page of a job once, and each that succeeded charged once."""
    for job_id in customer.jobs:
        path = f"/v1/jobs/{job_id}/results?limit=1000&include_content=false"
        pages = customer.ask("GET", path).json()["items"]
        urls = Counter(page["url"] for page in pages)
        if urls and max(urls.values()) > 1:
            raise Violation(f"{job_id} has a page twice: {urls.most_common(1)}")
        wrong = [page for page in pages if page["credits"] != (page["status"] == "succeeded")]
        if wrong:
            raise Violation(f"{job_id} has a page at a wrong price: {wrong[0]}")


def _check_visits(customer: Customer, injector: Injector, asked: Counter[str]) -> None:
    """The site is asked for a page once a job, and again only for what a fault has cost."""
    lost = sum(
        times for fault, times in injector.injected.items() if not fault.startswith(HARMLESS)
    )
    permitted = len(customer.jobs) * (1 + TRIES * lost)
    pages = Counter({url: n for url, n in asked.items() if not url.endswith((".txt", ".xml"))})
    if pages and max(pages.values()) > permitted:
        raise Violation(f"the site was asked more than {permitted} times: {pages.most_common(1)}")


def _check_operator(town: Town, customer: Customer) -> None:
    """No lease is left, and every invariant of the ledger holds."""
    admin = {"Authorization": f"Bearer {town.admin_key}"}
    path = "/admin/v1/jobs?limit=1000"
    for job in customer.ask("GET", path, headers=admin).json()["items"]:
        if job["lease_owner"] is not None or job["finished_at"] is None:
            raise Violation(f"a job is left open: {job}")
    proof = customer.ask("POST", "/admin/v1/reconciliation", headers=admin, json={}).json()
    if not proof["ok"]:
        raise Violation(f"the books are broken: {proof}")
