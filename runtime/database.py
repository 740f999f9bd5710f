"""The PostgreSQL pool: transaction() to write, snapshot() to read; the one door to asyncpg."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import asyncpg
import msgspec

from runtime import loops
from runtime.errors import Unavailable

# asyncpg's classes are generic only in its stubs, not at run time.
if TYPE_CHECKING:
    Connection = (
        asyncpg.Connection[asyncpg.Record] | asyncpg.pool.PoolConnectionProxy[asyncpg.Record]
    )
    Pool = asyncpg.Pool[asyncpg.Record]
else:
    Connection = asyncpg.Connection
    Pool = asyncpg.Pool

Row = asyncpg.Record
T = TypeVar("T")

APP = "pagetoll_app"
SYSTEM = "pagetoll_system"

STATEMENT_SECONDS = 10
CONNECT_SECONDS = 5
ACQUIRE_SECONDS = 5

# After these nothing is known about a commit: the same call must be made again.
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    OSError,
    TimeoutError,
)
# After these nothing was committed, and another try may do better.
BEATEN = (
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    # no disk, memory or connections left
    asyncpg.InsufficientResourcesError,
    asyncpg.PostgresSystemError,
    # a server that has just been made a replica, or whose operator stopped writes
    asyncpg.ReadOnlySQLTransactionError,
)

# After these the call was wrong in itself: it changed nothing, and would fail again.
UNSTORABLE = (
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.IntegrityConstraintViolationError,
    UnicodeEncodeError,
)


class Database:
    """A pool of one role's connections. Every error of the network leaves as Unavailable."""

    def __init__(self, url: str, *, role: str, size: int) -> None:
        self.url = url
        self.role = role
        self.size = size
        self._pool: Pool | None = None

    async def open(self) -> None:
        """Prepares the pool; connects when first used, so that a process may start first."""
        self._pool = asyncpg.create_pool(
            self.url,
            min_size=0,
            max_size=self.size,
            max_inactive_connection_lifetime=300,
            command_timeout=STATEMENT_SECONDS + 2,
            timeout=CONNECT_SECONDS,
            init=_prepare,
            server_settings=_session_settings(self.role),
        )
        await self._pool

    async def close(self) -> None:
        if self._pool is not None:
            try:
                await asyncio.wait_for(self._pool.close(), timeout=CONNECT_SECONDS)
            except LOST:
                self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection]:
        """A connection of the pool; raises Unavailable when PostgreSQL does not answer."""
        assert self._pool is not None, "the database is not open"
        try:
            async with self._pool.acquire(timeout=ACQUIRE_SECONDS) as connection:
                yield connection
        except (*LOST, *BEATEN) as error:
            raise Unavailable("the database does not answer") from error

    @asynccontextmanager
    async def transaction(self, tenant_id: object = None) -> AsyncGenerator[Connection]:
        """A transaction to write in; with a tenant, row-level security sees that tenant."""
        async with self.connection() as connection, connection.transaction():
            if tenant_id is not None:
                await enter_tenant(connection, tenant_id)
            yield connection

    @asynccontextmanager
    async def snapshot(self, tenant_id: object = None) -> AsyncGenerator[Connection]:
        """A read-only transaction in which every statement sees the same instant."""
        async with (
            self.connection() as connection,
            connection.transaction(isolation="repeatable_read", readonly=True),
        ):
            if tenant_id is not None:
                await enter_tenant(connection, tenant_id)
            yield connection

    async def repeat(self, call: Callable[[Connection], Awaitable[T]], *, seconds: float) -> T:
        """Makes the same safe-to-repeat call again while PostgreSQL is away, for so long at most.

        `call` must be ONE statement, or open its own transaction: a connection lost in a commit
        means that the outcome is unknown, and the same call must find that out.
        """

        async def attempt() -> T:
            async with self.connection() as connection:
                return await call(connection)

        return await loops.repeat(attempt, seconds=seconds, what="database call")


async def enter_tenant(connection: Connection, tenant_id: object) -> None:
    """Row-level security sees this tenant until the transaction ends."""
    await connection.execute("SELECT set_config('pagetoll.tenant', $1, true)", str(tenant_id))


async def connect(url: str) -> Connection:
    """One connection outside a pool, for migrations."""
    return await asyncpg.connect(url, timeout=CONNECT_SECONDS)


def sqlstate(error: BaseException) -> str | None:
    """The five characters by which PostgreSQL names an error, such as PT402; None for others."""
    return error.sqlstate if isinstance(error, asyncpg.PostgresError) else None


def as_json(value: object) -> str:
    """JSON text for a jsonb parameter. NUL, which PostgreSQL cannot store, must be gone before."""
    return msgspec.json.encode(value).decode()


def _session_settings(role: str) -> dict[str, str]:
    return {
        "role": role,
        "application_name": role,
        "timezone": "UTC",
        "statement_timeout": f"{STATEMENT_SECONDS}s",
        "lock_timeout": "5s",
        "idle_in_transaction_session_timeout": "10s",
        "jit": "off",
    }


async def _prepare(connection: Connection) -> None:
    for kind in ("json", "jsonb"):
        await connection.set_type_codec(
            kind, schema="pg_catalog", encoder=str, decoder=msgspec.json.decode
        )
