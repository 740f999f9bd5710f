"""Jobs are listed, looked at and cancelled, through a real gateway that has no workers."""

import json
from collections.abc import Callable

import httpx
import pytest
from click.testing import Result

from cli.welcome import Welcome
from tests.support.scripted_api import ScriptedApi, a_job

Run = Callable[..., Result]


@pytest.fixture
def job_id(gateway_place: Welcome) -> str:
    response = httpx.post(
        f"{gateway_place.url}/v1/crawls",
        headers={"Authorization": f"Bearer {gateway_place.tenant_key}"},
        json={"url": "https://example.com/", "max_pages": 7, "tags": ["cli"]},
        trust_env=False,
    )
    made: dict[str, str] = response.raise_for_status().json()
    return made["job_id"]


def test_a_jobs_status_has_its_bill(live: Run, job_id: str) -> None:
    shown = live("status", job_id).stdout

    assert shown.startswith("queued: 0 succeeded, 0 failed, 0 skipped of 1 admitted\n")
    assert "credits reserved       7" in shown


def test_a_status_is_whole_in_json(live: Run, job_id: str) -> None:
    assert json.loads(live("status", job_id, "--json").stdout)["tags"] == ["cli"]


def test_jobs_are_listed_newest_first(live: Run, job_id: str) -> None:
    head, first, *_ = live("jobs").stdout.splitlines()

    assert head.split()[:3] == ["JOB", "KIND", "STATE"]
    assert first.split()[:3] == [job_id, "crawl", "queued"]


def test_the_list_is_as_long_and_as_narrow_as_asked_for(live: Run, job_id: str) -> None:
    assert len(json.loads(live("jobs", "--limit", "1", "--json").stdout)) == 1
    assert json.loads(live("jobs", "--tag", "other", "--json").stdout) == []
    assert json.loads(live("jobs", "--state", "running", "--json").stdout) == []
    assert job_id in live("jobs", "--tag", "cli", "--state", "queued").stdout


def test_a_cancelled_job_gives_everything_back(live: Run, job_id: str) -> None:
    shown = live("cancel", job_id).stdout

    assert shown.startswith("cancelled: ")
    assert "credits released       7" in shown
    assert live("cancel", job_id).exit_code == 0


def test_an_unknown_job_is_told_so(live: Run) -> None:
    result = live("status", "01930000-0000-7000-8000-000000000000")

    assert result.exit_code == 1
    assert result.stderr == "pagetoll: There is no such job. (not_found)\n"


def test_a_partial_job_says_so(api: ScriptedApi, run: Run) -> None:
    api.answer("GET /v1/jobs/0193", a_job(state="succeeded", partial=True))

    assert "The results are partial.\n" in run("status", "0193").stdout
