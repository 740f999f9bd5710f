"""Refunds, adjustments and disputes from the command line, through a real gateway."""

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from runtime import ids

Run = Callable[..., Result]

JOB = str(ids.new_id())
REFUND = {
    "correction_id": "c-1",
    "kind": "refund",
    "amount": 2,
    "state": "done",
    "requested_by": "Ann",
    "approved_by": None,
    "reason": "empty",
}
DISPUTE = {
    "dispute_id": "d-1",
    "tenant_id": "t-1",
    "job_id": "j-1",
    "state": "open",
    "reason": "empty",
    "credits_charged": 1,
    "credits_refunded": 0,
    "pages": [
        {
            "index": 4,
            "status": "succeeded",
            "http_status": 200,
            "bytes": 17,
            "content_type": "text/html",
            "credits": 1,
            "credits_refunded": 0,
            "content_hash": "00ff",
            "url": "https://example.com/",
            "final_url": None,
        }
    ],
}


@pytest.fixture
def tenant_id(live: Run) -> str:
    made: dict[str, str] = json.loads(live("tenant", "create", "Ann", "--json").stdout)
    return made["tenant_id"]


def adjusted(live: Run, tenant_id: str, direction: str, amount: int, **changes: str) -> Result:
    named = ("--reason", "a mistake", "--op-key", f"{direction}-{amount}")
    return live("adjust", tenant_id, direction, str(amount), *named, **changes)


def test_credits_are_adjusted_in_and_out(live: Run, tenant_id: str) -> None:
    given = adjusted(live, tenant_id, "in", 50).stdout.splitlines()[1].split()
    taken = adjusted(live, tenant_id, "out", 20).stdout.splitlines()[1].split()
    too_much = adjusted(live, tenant_id, "out", 31)

    assert given[1:4] == ["adjust_in", "50", "done"]
    assert taken[1:4] == ["adjust_out", "20", "done"]
    assert (too_much.exit_code, "(insufficient_credits)" in too_much.stderr) == (1, True)


def test_a_large_adjustment_waits_for_another_admin(live: Run, tenant_id: str) -> None:
    asked = adjusted(live, tenant_id, "in", 10_001).stdout
    waiting = json.loads(live("corrections", "list", "--tenant", tenant_id, "--json").stdout)
    (correction_id,) = [one["correction_id"] for one in waiting]
    own = live("corrections", "approve", tenant_id, correction_id)
    made = live("key", "create", "--tenant", tenant_id, "--scope", "admin", "--json").stdout
    other = json.loads(made)["secret"]

    approved = live("corrections", "approve", tenant_id, correction_id, "--key", other, "--json")

    assert asked.endswith("another admin key must approve it.\n")
    assert "(forbidden)" in own.stderr
    assert json.loads(approved.stdout)["state"] == "done"
    listed = live("corrections", "list", "--tenant", tenant_id, "--state", "pending").stdout
    assert len(listed.splitlines()) == 1


def test_a_pending_adjustment_is_refused_with_a_reason(live: Run, tenant_id: str) -> None:
    adjusted(live, tenant_id, "in", 10_001)
    waiting = json.loads(live("corrections", "list", "--tenant", tenant_id, "--json").stdout)
    which = waiting[0]["correction_id"]

    refused = live("corrections", "refuse", tenant_id, which, "--reason", "no", "--json")

    assert json.loads(refused.stdout)["refusal"] == "no"


def test_a_refund_names_its_pages(run: Run, api) -> None:
    api.answer("POST /admin/v1/tenants/t-1/refunds", REFUND)

    result = run(
        *("refund", "t-1", "j-1", "--page", "0", "--page", "3"),
        *("--reason", "empty", "--op-key", "ticket-1"),
    )

    assert result.stdout.splitlines()[1].split()[:4] == ["c-1", "refund", "2", "done"]
    assert api.asked[0].body == {
        "job_id": "j-1",
        "pages": [0, 3],
        "reason": "empty",
        "op_key": "ticket-1",
    }
    assert api.asked[0].headers["authorization"] == "Bearer admin-key"


def test_a_refund_of_an_unknown_job_is_told(live: Run, tenant_id: str) -> None:
    result = live("refund", tenant_id, JOB, "--page", "0", "--reason", "r", "--op-key", "a")

    assert (result.exit_code, "(not_found)" in result.stderr) == (1, True)


def test_a_customer_opens_a_dispute(run: Run, api) -> None:
    api.answer("POST /v1/jobs/j-1/disputes", DISPUTE)

    result = run("disputes", "open", "j-1", "--page", "4", "--reason", "empty")

    assert result.stdout.splitlines()[1].split()[:5] == ["d-1", "t-1", "j-1", "open", "4"]
    assert "https://example.com/" in result.stdout
    assert api.asked[0].body == {"pages": [4], "reason": "empty"}
    assert api.asked[0].headers["authorization"] == "Bearer tenant-key"


@pytest.mark.parametrize("decision", ["accept", "reject"])
def test_an_operator_decides_a_dispute(run: Run, api, decision: str) -> None:
    call = "POST /admin/v1/tenants/t-1/disputes/d-1/decision"
    api.answer(call, {**DISPUTE, "state": f"{decision}ed"})

    result = run("disputes", decision, "t-1", "d-1", "--reason", "seen")

    assert result.stdout.splitlines()[1].split()[3] == f"{decision}ed"
    assert "Nothing has moved yet" not in result.stdout
    assert api.asked[0].body == {"decision": decision, "reason": "seen"}


def test_an_acceptance_that_waits_says_so(run: Run, api) -> None:
    api.answer("POST /admin/v1/tenants/t-1/disputes/d-1/decision", DISPUTE)

    result = run("disputes", "accept", "t-1", "d-1", "--reason", "seen")

    assert result.stdout.endswith("another admin key must approve the refund.\n")


def test_disputes_are_listed_and_shown(run: Run, api) -> None:
    api.answer("GET /admin/v1/disputes", {"items": [{**DISPUTE, "pages": [4]}], "next": None})
    api.answer("GET /admin/v1/tenants/t-1/disputes/d-1", DISPUTE)

    listed = run("disputes", "list", "--state", "open")
    shown = run("disputes", "show", "t-1", "d-1", "--json")

    assert listed.stdout.splitlines()[1].split()[:5] == ["d-1", "t-1", "j-1", "open", "4"]
    assert json.loads(shown.stdout) == DISPUTE
    assert "state=open" in api.asked[0].target
