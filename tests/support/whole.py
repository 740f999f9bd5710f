"""The whole system as a newcomer starts it, and the bench site it crawls: real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import httpx

from runtime import clock, settings
from tests.support import processes
from tests.support.processes import ROOT, free_port

START_SECONDS = 90.0
LOOK_SECONDS = 0.02
BENCHSITE = ROOT / "tests" / "support" / "benchsite.py"


class Whole:
    """`pagetoll up` in a data folder of its own."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.log_file = folder.with_name(folder.name + ".log")
        self._variables = {f"PAGETOLL_{name.upper()}": v for name, v in variables.items()}
        self._process: subprocess.Popen[bytes] | None = None
        self._http: httpx.Client | None = None

    @property
    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8", errors="replace")

    @property
    def http(self) -> httpx.Client:
        assert self._http is not None, "the system was not started"
        return self._http

    def __enter__(self) -> Self:
        environment = {
            **settings.inherited_environment(),
            "PAGETOLL_DATA_DIR": str(self.folder),
            "PAGETOLL_PORT": str(self.port),
            "PAGETOLL_ALLOW_NETWORKS": "127.0.0.0/8",
            "PAGETOLL_LOG_FORMAT": "json",
            **self._variables,
        }
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "cli", "up"],
                cwd=ROOT,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        connection = self._wait_for_connection()
        self.keys = connection
        self._http = httpx.Client(
            base_url=connection["url"],
            headers={"Authorization": f"Bearer {connection['tenant_key']}"},
            timeout=30,
            trust_env=False,
        )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        """Ctrl-C, and the exit code."""
        assert self._process is not None
        if self._http is not None:
            self._http.close()
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self._process.wait(60)

    def children(self, words: str) -> list[int]:
        """Ids of the supervisor's own children whose command line holds these words."""
        assert self._process is not None
        pid = self._process.pid
        return [child for child in processes.children(pid) if words in command_of(child)]

    def kill(self, words: str) -> None:
        """kill -9 of the one child with these words, which the supervisor may just be starting."""
        deadline = clock.monotonic() + START_SECONDS
        while not (found := self.children(words)):
            assert clock.monotonic() < deadline, f"no {words} was started:\n{self.log}"
            time.sleep(LOOK_SECONDS)
        os.kill(found[0], signal.SIGKILL)

    def get(self, path: str, **query: Any) -> Any:
        answer = self.http.get(path, params=query)
        assert answer.status_code == 200, (answer.status_code, answer.text)
        return answer.json()

    def submit(self, url: str, **options: Any) -> dict[str, Any]:
        answer = self.http.post("/v1/crawls", json={"url": url} | options)
        assert answer.status_code == 202, (answer.status_code, answer.text)
        job: dict[str, Any] = answer.json()
        return job

    def pages(self, job_id: str, **query: Any) -> list[dict[str, Any]]:
        """All final pages, read by the cursor."""
        found: list[dict[str, Any]] = []
        after = -1
        while True:
            answer = self.get(f"/v1/jobs/{job_id}/results", after=after, limit=1000, **query)
            found += answer["items"]
            if answer["next"] is None:
                return found
            after = answer["next"]

    def pages_so_far(self, job_id: str) -> set[str]:
        """URLs of the final pages that a reader can have met by now."""
        found: set[str] = set()
        after = -1
        while True:
            answer = self.get(
                f"/v1/jobs/{job_id}/results", after=after, limit=1000, include_content="false"
            )
            found |= {page["url"] for page in answer["items"]}
            if not answer["items"]:
                return found
            after = answer["items"][-1]["index"]

    def _wait_for_connection(self) -> dict[str, str]:
        place = self.folder / "connection.json"
        deadline = clock.monotonic() + START_SECONDS
        while clock.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, f"up ended:\n{self.log}"
            if place.exists():
                connection: dict[str, str] = json.loads(place.read_text(encoding="utf-8"))
                return connection
            time.sleep(LOOK_SECONDS)
        raise AssertionError(f"up was not ready:\n{self.log}")


class BenchSite:
    """The deterministic site, with its manifest and the log of what was asked of it."""

    def __init__(self, folder: Path, port: int, pages: int, mix: str, *, listen: int = 0) -> None:
        """`port` is in the addresses; the site listens on another where a wire is between."""
        self.base = f"http://127.0.0.1:{port}"
        self._listen = listen or port
        self.log_file = folder / "site.log"
        self._options = ["--pages", str(pages), "--mix", mix, "--base", self.base]

    def urls(self) -> dict[str, list[str]]:
        out = subprocess.run(
            [sys.executable, str(BENCHSITE), "manifest", "--urls", *self._options],
            check=True,
            capture_output=True,
        ).stdout
        listed: dict[str, list[str]] = json.loads(out)["urls"]
        return listed

    def asked(self) -> Counter[str]:
        """How often each address was asked for."""
        lines = self.log_file.read_text(encoding="utf-8").splitlines()
        return Counter(self.base + line.split(" ", 2)[2] for line in lines)

    @contextmanager
    def serving(self) -> Iterator[Self]:
        process = subprocess.Popen(
            [
                *(sys.executable, str(BENCHSITE), "serve", *self._options),
                *("--listen", str(self._listen), "--log", str(self.log_file)),
            ],
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        with process.stdout as out:
            out.readline()
        try:
            yield self
        finally:
            process.terminate()
            process.wait(30)


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except (FileNotFoundError, ProcessLookupError):
        return ""
