"""Reads an answer that must be a problem, and checks what every problem has."""

from typing import Any

import httpx


def problem_of(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    problem: dict[str, Any] = answer.json()
    assert (answer.status_code, problem["code"]) == (status, code), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["status"] == status
    assert problem["request_id"] == answer.headers["X-Request-Id"]
    assert problem["type"] == f"/problems/{code}"
    return problem
