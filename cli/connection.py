"""Where the client commands call, and with which key: options, variables, a running `up`."""

from pathlib import Path

import msgspec

from cli import up
from cli.welcome import Welcome
from runtime import settings

URL_VARIABLE = "PAGETOLL_URL"
KEY_VARIABLE = "PAGETOLL_KEY"
ADMIN_KEY_VARIABLE = "PAGETOLL_ADMIN_KEY"


class NotConnected(Exception):
    """Nothing says where the API is, or who is asking; one sentence with the way out."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """An address of the API, and a key for it."""

    url: str
    key: str


def find(*, url: str | None, key: str | None, admin: bool) -> Place:
    """The options, else the environment, else what a running `pagetoll up` announces.

    Raises NotConnected. A key that was announced is only sent to the address announced with it.
    """
    variable = ADMIN_KEY_VARIABLE if admin else KEY_VARIABLE
    url = url or settings.client_variable(URL_VARIABLE)
    key = key or settings.client_variable(variable)
    if url and key:
        return Place(url=url.rstrip("/"), key=key)
    data_dir = Path(up.load_settings().data_dir)
    announced = read(data_dir)
    if not url and announced is None:
        raise NotConnected(
            f"No running `pagetoll up` announces itself in {data_dir}:"
            f" start one, or say where the API is with --url or {URL_VARIABLE}."
        )
    if announced is not None and (not url or url.rstrip("/") == announced.url):
        own = announced.admin_key if admin else announced.tenant_key
        return Place(url=announced.url, key=key or own)
    raise NotConnected(f"No key is given for {url}: use --key or {variable}.")


def read(data_dir: Path) -> Welcome | None:
    """What a running `pagetoll up` announces in its data folder."""
    try:
        return msgspec.json.decode((data_dir / up.CONNECTION).read_bytes(), type=Welcome)
    except (OSError, msgspec.DecodeError):
        return None
