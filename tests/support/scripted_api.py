"""An API that says what a test wrote for it, over real HTTP on loopback."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request as the scripted API read it; header names are lower-case."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the scripted API says; without a status it hangs up."""

    body: Any
    status: int | None = 200
    headers: dict[str, str] = {}


class ScriptedApi:
    """Answers each `METHOD /path` with what was written for it, the last answer for ever."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.was_asked = threading.Condition()
        self._answers: dict[str, list[Answer]] = {}
        self.url = ""

    def answer(self, call: str, *bodies: Any) -> None:
        self._answers[call] = [
            body if isinstance(body, Answer) else Answer(body=body) for body in bodies
        ]

    def refuse(self, call: str, status: int, code: str, detail: str) -> None:
        self.answer(call, problem(status, code, detail))

    def calls(self) -> list[str]:
        return [f"{one.method} {one.target.partition('?')[0]}" for one in self.asked]

    def wait_until_asked(self, call: str) -> None:
        with self.was_asked:
            assert self.was_asked.wait_for(lambda: call in self.calls(), timeout=60)

    def next_answer(self, asked: Asked) -> Answer:
        call = f"{asked.method} {asked.target.partition('?')[0]}"
        answers = self._answers.get(call, [problem(404, "not_found", "There is no such thing.")])
        answer = answers[0] if len(answers) == 1 else answers.pop(0)
        with self.was_asked:
            self.asked.append(asked)
            self.was_asked.notify_all()
        return answer


def problem(status: int, code: str, detail: str) -> Answer:
    return Answer(status=status, body={"code": code, "detail": detail, "status": status})


@contextmanager
def served(scripted: ScriptedApi) -> Iterator[ScriptedApi]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def respond(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            answer = scripted.next_answer(
                Asked(
                    method=self.command,
                    target=self.path,
                    headers={name.lower(): value for name, value in self.headers.items()},
                    body=json.loads(self.rfile.read(length)) if length else None,
                )
            )
            if answer.status is None:
                self.close_connection = True
                return
            is_text = isinstance(answer.body, str)
            content = answer.body.encode() if is_text else json.dumps(answer.body).encode()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_DELETE = respond  # noqa: N815 # the library's names

        def log_message(self, *_: object) -> None:
            """Says nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    scripted.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield scripted
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def a_job(**changes: Any) -> dict[str, Any]:
    """A job's status; `succeeded`, `charged`, `released` and `settlement_pending` go inside."""
    job = {
        "job_id": "0193",
        "kind": "crawl",
        "state": "queued",
        "phase": "queued",
        "partial": False,
        "created_at": "2026-11-30T00:00:00Z",
        "completion_reason": None,
        "error": None,
        "warnings": [],
    }
    inside = {"succeeded": 0, "charged": 0, "released": 0, "settlement_pending": True}
    inside.update({name: changes.pop(name) for name in inside if name in changes})
    return {
        **job,
        "progress": {"admitted": 5, "succeeded": inside["succeeded"], "failed": 0, "skipped": 0},
        "usage": {
            "credits_reserved": 10,
            "credits_charged": inside["charged"],
            "credits_released": inside["released"],
            "settlement_pending": inside["settlement_pending"],
        },
        **changes,
    }
