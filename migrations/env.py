"""Alembic's environment: one asyncpg connection as the schema's owner, plain SQL steps."""

import asyncio

from alembic import context
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from runtime import database


def run(connection: Connection) -> None:
    # Two replicas that start together migrate one after the other; the lock ends with the session.
    connection.exec_driver_sql("SELECT pg_advisory_lock(hashtext('pagetoll.schema'))")
    connection.commit()
    context.configure(connection=connection, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


async def main(url: str) -> None:
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: database.connect(url),
        poolclass=pool.NullPool,
    )
    async with engine.connect() as connection:
        await connection.run_sync(run)
        await connection.commit()
    await engine.dispose()


asyncio.run(main(context.config.attributes["url"]))
