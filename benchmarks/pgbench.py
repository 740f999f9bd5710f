"""Finds pgbench and measures what PostgreSQL itself can do with one hot row."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from runtime import database
from runtime.embedded import binaries, folders, processes

CLIENTS = 16
ACCOUNT = 1
SCHEMA = """
CREATE TABLE hot_account (account integer PRIMARY KEY, available bigint CHECK (available >= 0))
    WITH (fillfactor = 50);
CREATE TABLE hot_hold (
    account integer NOT NULL, hold bigint GENERATED ALWAYS AS IDENTITY, amount bigint NOT NULL,
    PRIMARY KEY (account, hold));
INSERT INTO hot_account VALUES (1, 1000000000000)
"""
GUARDED = f"""WITH taken AS (
    UPDATE hot_account SET available = available - 10
    WHERE account = {ACCOUNT} AND available >= 10 RETURNING account)
INSERT INTO hot_hold (account, amount) SELECT account, 10 FROM taken;
"""
"""One statement, one commit: nothing that reserves can be quicker on one row."""


def program() -> Path | None:
    """Debian's newest pgbench, or PATH's; None where there is none."""
    debian = sorted(binaries.DEBIAN_FOLDER.glob("*/bin/pgbench"))
    found = shutil.which("pgbench")
    return debian[-1] if debian else Path(found) if found else None


async def prepare(url: str) -> None:
    connection = await database.connect(url)
    try:
        await connection.execute(SCHEMA)
    finally:
        await connection.close()


def guarded_updates(url: str, *, seconds: int) -> float:
    """Reserves a second of 16 clients on one row, by pgbench; the tables must be there."""
    found = program()
    assert found is not None, "ask program() first"
    parts = urlsplit(url)
    with tempfile.TemporaryDirectory(prefix="pagetoll-bench-", dir="/tmp") as folder:
        script = Path(folder) / "guarded.sql"
        script.write_text(GUARDED, encoding="utf-8")
        Path(folder).chmod(0o755)
        options = ["-n", "-M", "prepared", "-c", str(CLIENTS), "-j", "2", "-T", str(seconds)]
        who = ["-h", parse_qs(parts.query)["host"][0], "-U", parts.username or "postgres"]
        done = subprocess.run(
            [str(found), *options, "-f", str(script), *who, parts.path.lstrip("/")],
            env=binaries.PLAIN_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
            timeout=seconds + 60,
            **processes.identity(folders.server_account()),
        )
    rate = re.search(r"^tps = ([\d.]+)", done.stdout, re.MULTILINE)
    assert rate is not None, done.stdout
    return float(rate[1])
