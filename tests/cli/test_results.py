"""Pages come as a table without their content, or as JSON Lines with it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.scripted_api import ScriptedApi

Run = Callable[..., Result]

RESULTS = "/v1/jobs/0193/results"


def a_page(index: int, **changes: object) -> dict[str, object]:
    return {
        "index": index,
        "url": f"https://example.com/{index}",
        "status": "succeeded",
        "reason": None,
        "http_status": 200,
        "credits": 1,
        "markdown": "# A title",
        **changes,
    }


@pytest.fixture(autouse=True)
def pages(api: ScriptedApi) -> None:
    api.answer(
        f"GET {RESULTS}",
        {"items": [a_page(0), a_page(1, status="failed", reason="not_found")], "next": 1},
        {"items": [a_page(2)], "next": 2},
        {"items": [], "next": 2},
    )


def test_the_table_leaves_the_content_where_it_is(api: ScriptedApi, run: Run) -> None:
    lines = run("results", "0193").stdout.splitlines()

    assert [line.split() for line in lines[1:3]] == [
        ["0", "succeeded", "-", "200", "1", "https://example.com/0"],
        ["1", "failed", "not_found", "200", "1", "https://example.com/1"],
    ]
    assert all("include_content=false" in one.target for one in api.asked)


def test_a_job_that_runs_gives_what_is_there(api: ScriptedApi, run: Run) -> None:
    result = run("results", "0193", "--json")

    assert [json.loads(line)["index"] for line in result.stdout.splitlines()] == [0, 1, 2]
    assert [one.target for one in api.asked] == [
        f"{RESULTS}?limit=1000",
        f"{RESULTS}?after=1&limit=1000",
        f"{RESULTS}?after=2&limit=1000",
    ]


def test_pages_are_written_with_their_content(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "pages.jsonl"

    result = run("results", "0193", "--output", str(path))

    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["markdown"] for line in lines] == ["# A title"] * 3
    assert result.stdout == ""
    assert result.stderr == f"3 pages in {path}.\n"


def test_results_that_are_gone_leave_no_file(api: ScriptedApi, run: Run, tmp_path: Path) -> None:
    api.refuse(f"GET {RESULTS}", 410, "result_expired", "The content is no longer kept.")
    path = tmp_path / "pages.jsonl"

    result = run("results", "0193", "--output", str(path))

    assert result.exit_code == 1
    assert "(result_expired)" in result.stderr
    assert list(tmp_path.iterdir()) == []
