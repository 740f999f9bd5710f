"""Applies the SQL functions of jobs/ and accounting/ again when their files have changed."""

import hashlib
import re
from pathlib import Path

import accounting
import jobs
from runtime.database import Connection

FILES = (
    *sorted(Path(jobs.__file__).parent.glob("*functions.sql")),
    *sorted(Path(accounting.__file__).parent.glob("*functions.sql")),
)
LOCK = "SELECT pg_advisory_xact_lock(hashtext('pagetoll.functions'))"
TABLE = """
CREATE TABLE IF NOT EXISTS applied_functions (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
REMEMBER = """
INSERT INTO applied_functions (checksum) VALUES ($1)
ON CONFLICT (only_row) DO UPDATE SET checksum = excluded.checksum, applied_at = now()
"""
KNOWN = """
SELECT oid::regprocedure::text AS signature FROM pg_proc
WHERE pronamespace = 'public'::regnamespace AND proname = ANY($1)
"""


def text() -> str:
    return "\n".join(file.read_text(encoding="utf-8") for file in FILES)


def checksum() -> str:
    return hashlib.sha256(text().encode()).hexdigest()


async def apply(connection: Connection) -> bool:
    """Replaces the functions in one transaction; False when they were up to date."""
    async with connection.transaction():
        await connection.execute(LOCK)
        await connection.execute(TABLE)
        known = await connection.fetchval("SELECT checksum FROM applied_functions")
        if known == checksum():
            return False
        # The functions name one another in any order; bodies are checked when they first run.
        await connection.execute("SET LOCAL check_function_bodies = off")
        await connection.execute(text())
        await connection.execute(
            "GRANT SELECT ON applied_functions TO pagetoll_app, pagetoll_system"
        )
        await connection.execute(REMEMBER, checksum())
    return True


async def drop(connection: Connection) -> None:
    """Takes the functions out, so that a step down may drop the tables they name."""
    names = re.findall(r"^CREATE OR REPLACE FUNCTION (\w+)", text(), re.MULTILINE)
    async with connection.transaction():
        await connection.execute(LOCK)
        known = await connection.fetch(KNOWN, names)
        for row in known:
            await connection.execute(f"DROP FUNCTION {row['signature']} CASCADE")
        await connection.execute("DROP TABLE IF EXISTS applied_functions")
