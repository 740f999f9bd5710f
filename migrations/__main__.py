"""Brings the schema up or down: python -m migrations upgrade|downgrade|status [REVISION]."""

import asyncio
import sys

from migrations import schema
from runtime import database, settings

USAGE = "usage: python -m migrations upgrade|downgrade|status [REVISION]"


async def status(url: str) -> str:
    connection = await database.connect(url)
    try:
        current = await schema.current(connection)
    finally:
        await connection.close()
    return f"database: {current or 'empty'}, code: {schema.head()}"


def main(arguments: list[str]) -> int:
    try:
        url = settings.load().owner_url
    except settings.SettingsError as error:
        print(error, file=sys.stderr)
        return 2
    match arguments:
        case ["upgrade", *rest] if url:
            schema.upgrade(url, *rest[:1])
        case ["downgrade", *rest] if url:
            schema.downgrade(url, *rest[:1])
        case ["status"] if url:
            print(asyncio.run(status(url)))
        case _:
            print(USAGE if url else "PAGETOLL_DATABASE_URL is not set.", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
