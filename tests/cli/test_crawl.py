"""A crawl is submitted once, followed to its end, and shown with its bill."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cli import watching
from runtime import settings
from tests.support.processes import ROOT
from tests.support.scripted_api import Answer, ScriptedApi, a_job, problem

Run = Callable[..., Result]

SITE = "https://example.com/"
JOB = "/v1/jobs/0193"
NOW = {"Retry-After": "0"}


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS_MAX", 0.01)


def then(**changes: object) -> Answer:
    return Answer(body=a_job(**changes), headers=NOW)


def ended(state: str, **changes: object) -> Answer:
    return then(state=state, settlement_pending=False, **changes)


def accepted() -> Answer:
    return Answer(status=202, body=a_job(), headers=NOW)


def scripted(api: ScriptedApi, *polls: Answer) -> None:
    api.answer("POST /v1/crawls", accepted())
    api.answer(f"GET {JOB}", *polls)


def test_only_what_is_asked_for_is_sent(api: ScriptedApi, run: Run) -> None:
    scripted(api, ended("succeeded"))

    run("crawl", SITE, "--max-pages", "5")
    run(
        *("crawl", SITE, "--max-pages", "5", "--max-depth", "0", "--include", "/a", "--include"),
        *("/b", "--exclude", "/c", "--format", "text", "--idempotency-key", "mine"),
    )

    first, second = (one for one in api.asked if one.method == "POST")
    assert first.body == {"url": SITE, "max_pages": 5}
    assert second.body == {
        "url": SITE,
        "max_pages": 5,
        "max_depth": 0,
        "include": ["/a", "/b"],
        "exclude": ["/c"],
        "formats": ["text"],
    }
    assert second.headers["idempotency-key"] == "mine"
    assert len(first.headers["idempotency-key"]) == 22


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 3), ("cancelled", 4)])
def test_the_exit_code_tells_how_the_job_ended(
    api: ScriptedApi, run: Run, state: str, code: int
) -> None:
    scripted(api, then(state="running"), ended(state, charged=4, released=6))

    result = run("crawl", SITE, "--max-pages", "10")

    assert result.exit_code == code
    assert "credits charged        4" in result.stdout
    assert "credits released       6" in result.stdout
    assert api.calls() == ["POST /v1/crawls", f"GET {JOB}", f"GET {JOB}"]


def test_a_failure_is_explained(api: ScriptedApi, run: Run) -> None:
    error = {"reason": "upstream_error", "message": "no page succeeded"}
    warning = {"code": "source_failed", "message": "robots.txt could not be read"}
    scripted(api, ended("failed", error=error, warnings=[warning]))

    result = run("crawl", SITE, "--max-pages", "10")

    assert "no page succeeded (upstream_error)" in result.stdout
    assert "Warning: robots.txt could not be read (source_failed)" in result.stdout


def test_a_refused_crawl_asks_nothing_more(api: ScriptedApi, run: Run) -> None:
    api.refuse("POST /v1/crawls", 402, "insufficient_credits", "10 credits are needed.")

    result = run("crawl", SITE, "--max-pages", "10")

    assert result.exit_code == 1
    assert result.stderr == "pagetoll: 10 credits are needed. (insufficient_credits)\n"
    assert api.calls() == ["POST /v1/crawls"]


def test_a_lost_answer_makes_no_second_job(api: ScriptedApi, run: Run) -> None:
    scripted(api, ended("succeeded"))
    api.answer("POST /v1/crawls", Answer(status=None, body=None), accepted())

    assert run("crawl", SITE, "--max-pages", "5").exit_code == 0

    first, second = (one for one in api.asked if one.method == "POST")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body


def test_a_gateway_that_is_away_for_a_moment_is_waited_for(api: ScriptedApi, run: Run) -> None:
    away = problem(503, "backend_unavailable", "The service is not complete now.")
    scripted(api, away, Answer(status=None, body=None), ended("succeeded"))

    assert run("crawl", SITE, "--max-pages", "5").exit_code == 0


def test_a_job_that_is_gone_ends_the_command(api: ScriptedApi, run: Run) -> None:
    scripted(api, problem(404, "not_found", "There is no such job."))

    result = run("crawl", SITE, "--max-pages", "5")

    assert result.exit_code == 1
    assert result.stderr.endswith("pagetoll: There is no such job. (not_found)\n")


def test_a_gateway_that_stays_away_leaves_the_job_to_itself(
    api: ScriptedApi, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PATIENCE_SECONDS", 0.0)
    scripted(api, problem(503, "backend_unavailable", "The service is not complete now."))

    result = run("crawl", SITE, "--max-pages", "5")

    assert result.exit_code == 1
    assert result.stderr.endswith("Job 0193 goes on. (backend_unavailable)\n")


def test_a_bill_that_is_open_after_the_end_is_waited_for(api: ScriptedApi, run: Run) -> None:
    scripted(api, then(state="succeeded"), ended("succeeded", charged=10))

    result = run("crawl", SITE, "--max-pages", "10")

    assert "credits charged       10" in result.stdout


def test_json_is_the_whole_status_and_nothing_else(api: ScriptedApi, run: Run) -> None:
    scripted(api, ended("succeeded", tags=["x"]))

    result = run("crawl", SITE, "--max-pages", "5", "--json")

    assert json.loads(result.stdout)["tags"] == ["x"]


def test_the_pages_are_written_in_order(api: ScriptedApi, run: Run, tmp_path: Path) -> None:
    scripted(api, ended("succeeded"))
    api.answer(
        f"GET {JOB}/results",
        {"items": [{"index": 0, "markdown": "é"}], "next": 0},
        {"items": [{"index": 1}], "next": None},
    )
    path = tmp_path / "pages.jsonl"

    result = run("crawl", SITE, "--max-pages", "5", "--output", str(path))

    assert result.exit_code == 0
    assert [json.loads(line)["index"] for line in path.read_text().splitlines()] == [0, 1]
    assert "2 pages in" in result.stderr


def test_nothing_is_paid_for_pages_that_cannot_be_kept(
    api: ScriptedApi, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "missing" / "pages.jsonl"

    result = run("crawl", SITE, "--max-pages", "5", "--output", str(path))

    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
    assert api.calls() == []


def test_a_refused_crawl_leaves_the_old_file(api: ScriptedApi, run: Run, tmp_path: Path) -> None:
    api.refuse("POST /v1/crawls", 429, "rate_limited", "Wait 6 s.")
    path = tmp_path / "pages.jsonl"
    path.write_text("old")

    assert run("crawl", SITE, "--max-pages", "5", "--output", str(path)).exit_code == 1

    assert path.read_text() == "old"


def start(api: ScriptedApi) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "crawl", SITE, "--max-pages", "5"],
        cwd=ROOT,
        env={
            **settings.inherited_environment(),
            "PAGETOLL_URL": api.url,
            "PAGETOLL_KEY": "k",
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_the_first_ctrl_c_cancels_the_job(api: ScriptedApi) -> None:
    scripted(api, then(state="running"))
    api.answer(f"DELETE {JOB}", ended("cancelled", released=10))
    with start(api) as process:
        api.wait_until_asked(f"GET {JOB}")

        process.send_signal(signal.SIGINT)
        stdout, _ = process.communicate(timeout=60)

    assert process.returncode == 4
    assert "credits released      10" in stdout


def test_the_second_ctrl_c_leaves_the_job_to_itself(api: ScriptedApi) -> None:
    scripted(api, then(state="running"))
    api.answer(f"DELETE {JOB}", then(state="cancelling"))
    with start(api) as process:
        api.wait_until_asked(f"GET {JOB}")
        process.send_signal(signal.SIGINT)
        api.wait_until_asked(f"DELETE {JOB}")

        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Job 0193 goes on" in stderr
