"""The commands run as a user runs them, against a scripted API or a real gateway."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from cli import welcome
from cli.__main__ import main
from runtime.embedded.postgres import EmbeddedPostgres
from runtime.embedded.redis import EmbeddedRedis
from runtime.settings import Settings
from tests.support import processes
from tests.support.database import copied
from tests.support.processes import OwnProcess

Run = Callable[..., Result]


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

        do_GET = do_POST = do_PATCH = do_DELETE = respond

        def log_message(self, format: str, *args: Any) -> None:
            pass

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


@pytest.fixture
def api() -> Iterator[ScriptedApi]:
    with served(ScriptedApi()) as scripted:
        yield scripted


@pytest.fixture
def run(api: ScriptedApi, tmp_path: Path) -> Run:
    """Runs `pagetoll …` against the scripted API; `variables` change its environment."""
    variables = {
        "PAGETOLL_URL": api.url,
        "PAGETOLL_KEY": "tenant-key",
        "PAGETOLL_ADMIN_KEY": "admin-key",
        "PAGETOLL_DATA_DIR": str(tmp_path / "data"),
    }
    return lambda *arguments, **changes: invoked(arguments, {**variables, **changes})


@pytest.fixture(scope="session")
def gateway_place(
    postgres_server: EmbeddedPostgres,
    database_template: str,
    redis_server: EmbeddedRedis,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[welcome.Welcome]:
    """A gateway without workers, and the keys of a tenant with credits."""
    with copied(postgres_server, database_template) as urls:
        settings = Settings(
            database_url=urls.app,
            system_database_url=urls.system,
            redis_url=redis_server.url,
            data_dir=str(tmp_path_factory.mktemp("data")),
            port=processes.free_port(),
            log_format="json",
        )
        process = OwnProcess("gateway", settings, log=tmp_path_factory.mktemp("logs") / "log")
        place = welcome.prepare(settings, None)
        process.start()
        try:
            process.wait_until_answered()
            yield place
        finally:
            process.stop()


@pytest.fixture
def live(gateway_place: welcome.Welcome) -> Run:
    """Runs `pagetoll …` against a real gateway; what it prints as JSON is in `.stdout`."""
    variables = {
        "PAGETOLL_URL": gateway_place.url,
        "PAGETOLL_KEY": gateway_place.tenant_key,
        "PAGETOLL_ADMIN_KEY": gateway_place.admin_key,
    }
    return lambda *arguments, **changes: invoked(arguments, {**variables, **changes})


def invoked(arguments: tuple[str, ...], variables: dict[str, str]) -> Result:
    result = CliRunner().invoke(main, list(arguments), env=variables, prog_name="pagetoll")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result
