"""Runs a step's .sql file through the raw asyncpg connection, in Alembic's transaction."""

from pathlib import Path
from typing import Any

from alembic import op

FOLDER = Path(__file__).parent / "sql"


def run(name: str) -> None:
    """Executes every statement of the file; a step that fails leaves nothing behind."""
    text = (FOLDER / name).read_text(encoding="utf-8")
    bind = op.get_bind()
    # A statement through SQLAlchemy opens the transaction that the raw connection then shares;
    # a prepared statement, which SQLAlchemy would use, cannot hold several statements.
    bind.exec_driver_sql("SET LOCAL lock_timeout = '5s'")
    raw: Any = bind.connection.dbapi_connection
    raw.run_async(lambda connection: connection.execute(text))
