"""`pagetoll migrate`: brings the schema of a database up or down, and tells where it is."""

import asyncio

import rich_click as click

from cli import calls, output, up
from migrations import schema
from runtime import database


class NoAnswer(Exception):
    """Why PostgreSQL could not be asked, in its own words."""


@click.group()
def migrate() -> None:
    """The database's schema. `pagetoll up` migrates by itself."""


@migrate.command("up")
@click.argument("revision", default=schema.HEAD)
def bring_up(revision: str) -> None:
    """Apply what is missing, up to REVISION or to the newest one."""
    url = reachable_url()
    schema.upgrade(url, revision)
    click.echo(f"The database is at {revision_at(url)}.")


@migrate.command()
@click.argument("revision")
@click.option("--yes", is_flag=True, help="Do not ask.")
def down(revision: str, yes: bool) -> None:
    """Take steps back to REVISION; `base` takes back all of them, and all data with them."""
    url = reachable_url()
    if not yes:
        click.confirm(f"Go back to {revision}, and lose the data of later steps?", abort=True)
    schema.downgrade(url, revision)
    click.echo(f"The database is at {revision_at(url)}.")


@migrate.command()
@output.as_json
def status(as_json: bool) -> None:
    """Tell the database's revision and this code's."""
    fields = {"database": revision_at(reachable_url()), "code": schema.head()}
    if as_json:
        output.show_json(fields)
    else:
        output.show_fields(fields)


def reachable_url() -> str:
    """The owner's URL from the settings, once PostgreSQL answers there; else ends the command."""
    url = up.load_settings().owner_url
    if not url:
        calls.fail(
            "PAGETOLL_DATABASE_URL is not set: name the server; `pagetoll up` migrates its own."
        )
    try:
        revision_at(url)
    except NoAnswer as error:
        calls.fail(f"PostgreSQL cannot be asked: {error}.")
    return url


def revision_at(url: str) -> str | None:
    """The database's revision, None where it is empty; raises NoAnswer."""
    return asyncio.run(_revision_at(url))


async def _revision_at(url: str) -> str | None:
    try:
        connection = await database.connect(url)
        try:
            known = await schema.current(connection)
        finally:
            await connection.close()
    except (*database.LOST, ValueError) as error:
        raise NoAnswer(calls.reason_of(error)) from error
    except Exception as error:
        if database.sqlstate(error) is None:
            raise
        raise NoAnswer(calls.reason_of(error)) from error
    return known
