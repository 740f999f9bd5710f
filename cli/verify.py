"""`pagetoll verify`: proves an export of the ledger offline, from the file alone."""

import re
import sys
from pathlib import Path

import rich_click as click

from accounting import signed_statements, verification
from accounting.verification import Expected, Rejected, Verified
from cli import calls, output
from cli.arguments import FILE
from runtime import signing

REJECTED = 5
STATEMENT_BYTES_MAX = 16 * 1024 * 1024
HEAD = re.compile(r"(?P<number>[0-9]{1,18}):(?P<head>[0-9a-f]{64})")


@click.command()
@click.argument("file", type=FILE)
@click.option("--public-key", help="The key that must have signed; else the file's own is used.")
@click.option(
    "--head", "heads", multiple=True, help="A head you kept, as NUMBER:HEX; the chain must have it."
)
@click.option("--unsigned", is_flag=True, help="Accept a file of an installation without a key.")
@output.as_json
def verify(
    file: Path, public_key: str | None, *, heads: tuple[str, ...], unsigned: bool, as_json: bool
) -> None:
    """Prove an export (GET /v1/credits/export) without a network: hashes, seals, signature, sums.

    A signed statement (GET /v1/credits/statement as JSON) is proved by its signature.

    Exit code 5 when anything in the file was changed; the line where it was seen is named.
    """
    expected = expected_of(public_key, heads, unsigned=unsigned)
    if verified_statement(file, public_key, as_json=as_json):
        return
    try:
        with file.open("rb") as opened:
            verified = verification.verify(opened, expected)
    except OSError as error:
        calls.fail(f"{file} cannot be read: {error.strerror}.")
    except Rejected as error:
        click.echo(output.plain(f"REJECTED. {error}."), err=True)
        sys.exit(REJECTED)
    if as_json:
        output.show_json(verified)
    else:
        show(verified, pinned=public_key is not None)


def verified_statement(file: Path, public_key: str | None, *, as_json: bool) -> bool:
    """Whether the file is a statement, which is then proved here; exit code 5 when it is false."""
    try:
        content = file.read_bytes() if file.stat().st_size <= STATEMENT_BYTES_MAX else b""
    except OSError as error:
        calls.fail(f"{file} cannot be read: {error.strerror}.")
    if b"ledger_head" not in content:
        return False
    try:
        document = signed_statements.check(content, public_key=public_key)
    except signed_statements.Rejected as error:
        click.echo(output.plain(f"REJECTED. {error}."), err=True)
        sys.exit(REJECTED)
    fields = {name: document[name] for name in ("opening", "closing", "ledger_head", "public_key")}
    if as_json:
        output.show_json(fields)
    else:
        output.show_fields({name: str(value) for name, value in fields.items()})
        click.echo("The statement is as it was signed.")
    return True


def expected_of(public_key: str | None, heads: tuple[str, ...], *, unsigned: bool) -> Expected:
    """What the options say; raises a usage error for what is no key or head."""
    if public_key is not None and not signing.PUBLIC_KEY.fullmatch(public_key):
        raise click.BadParameter("Expected 64 hexadecimal digits.", param_hint="--public-key")
    kept: dict[int, str] = {}
    for text in heads:
        found = HEAD.fullmatch(text)
        if found is None:
            raise click.BadParameter(
                "Expected NUMBER:HEX, as GET /v1/credits/head tells them.", param_hint="--head"
            )
        if kept.setdefault(int(found["number"]), found["head"]) != found["head"]:
            raise click.BadParameter("One seal has one head.", param_hint="--head")
    return Expected(public_key=public_key, heads=kept, unsigned=unsigned)


def show(verified: Verified, *, pinned: bool) -> None:
    balance = verified.balance
    output.show_fields(
        {
            "tenant": verified.tenant_id,
            "entries": f"{verified.sealed} sealed, {verified.unsealed} not sealed yet",
            "head": f"{verified.seal_no}:{verified.head}",
            "available": balance.available,
            "held": balance.held,
            "charged": balance.charged,
            "refunded": balance.refunded,
            "expired": balance.expired,
            "public key": verified.public_key,
        }
    )
    if not verified.signed:
        click.echo("\nThe sums and the chain are right; nobody has signed them.")
    elif pinned:
        click.echo("\nThe export is true.")
    else:
        click.echo("\nThe export is true, if that is the key of GET /v1/credits/signing-key.")
