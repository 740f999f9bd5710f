"""Calls the HTTP API for the commands, and turns what goes wrong into one sentence."""

import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import httpx
import msgspec
import rich_click as click

from cli import connection, output
from cli.connection import NotConnected, Place
from cli.output import CannotWrite

T = TypeVar("T")
Row = dict[str, Any]
Command = Callable[..., None]

CALL_SECONDS = 60.0
CONNECT_SECONDS = 5.0
ITEMS_A_CALL = 1_000
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
PASSING = frozenset({"rate_limited", "backend_unavailable"})
"""Codes that the same call may not meet again a little later."""


class CallFailed(Exception):
    """Why there is no answer to show; `code` is the API's word for it, empty without an answer."""

    def __init__(self, sentence: str, *, code: str = "", passing: bool = False) -> None:
        super().__init__(sentence)
        self.code = code
        self.passing = passing


class Api:
    """The API at one address, with one key."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, object] | None = None,
        parameters: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """One call; raises CallFailed unless it was answered with success."""
        try:
            response = self._client.request(
                method, path, json=body, params=parameters, headers=headers
            )
        except httpx.HTTPError as error:
            raise CallFailed(
                f"{self._client.base_url} does not answer: {reason_of(error)}.", passing=True
            ) from error
        except (httpx.InvalidURL, UnicodeError) as error:
            raise CallFailed(f"The call cannot be sent: {reason_of(error)}.") from error
        if not response.is_success:
            raise failure_of(response)
        return response

    def read(self, path: str, **parameters: str) -> Row:
        return decode(self.ask("GET", path, parameters=parameters), Row)

    def items(self, path: str, *, limit: int | None = None, **parameters: str) -> Iterator[Row]:
        """A list's items over all its pages, at most `limit`; ends where no more are there yet."""
        left = sys.maxsize if limit is None else limit
        while left > 0:
            answer = self.read(path, **{**parameters, "limit": str(min(left, ITEMS_A_CALL))})
            yield from answer["items"]
            left -= len(answer["items"])
            if answer["next"] is None or not answer["items"]:
                return
            parameters["after"] = str(answer["next"])


def talks(*, admin: bool = False) -> Callable[[Command], Command]:
    """Gives a command the options --url and --key and, as its first argument, the Api.

    A call that fails ends the command with exit code 1, its sentence and code on stderr.
    """

    def decorate(command: Command) -> Command:
        @click.option("--url", help="Where the API is; else PAGETOLL_URL, else the local `up`.")
        @click.option("--key", help=f"The API key; else {variable}, else the local `up`'s.")
        @functools.wraps(command)
        def call(*args: object, url: str | None, key: str | None, **options: object) -> None:
            try:
                place = connection.find(url=url, key=key, admin=is_admin(options))
                with client_of(place) as client:
                    command(Api(client), *args, **options)
            except (NotConnected, CannotWrite) as error:
                fail(str(error))
            except CallFailed as error:
                fail(str(error), code=error.code)

        return call

    def is_admin(options: Mapping[str, object]) -> bool:
        return admin or options.get("tenant") is not None

    variable = connection.ADMIN_KEY_VARIABLE if admin else connection.KEY_VARIABLE
    return decorate


def client_of(place: Place) -> httpx.Client:
    try:
        return httpx.Client(
            base_url=place.url,
            headers={"Authorization": f"Bearer {place.key}"},
            timeout=httpx.Timeout(CALL_SECONDS, connect=CONNECT_SECONDS),
            trust_env=httpx.URL(place.url).host not in LOOPBACK,
        )
    except (httpx.InvalidURL, UnicodeError) as error:
        raise NotConnected(
            f"{place.url} with the key given cannot be called: {reason_of(error)}."
        ) from error


def decode(response: httpx.Response, kind: type[T]) -> T:
    """The answer's JSON; raises CallFailed when it is something else."""
    try:
        return msgspec.json.decode(response.content, type=kind)
    except msgspec.DecodeError as error:
        raise CallFailed(
            f"{response.url} did not answer as Pagetoll does: {reason_of(error)}."
        ) from error


def failure_of(response: httpx.Response) -> CallFailed:
    """A problem (RFC 9457) in the API's words, or what else was answered."""
    try:
        problem = msgspec.json.decode(response.content, type=Row)
        sentence, code = str(problem["detail"]), str(problem["code"])
    except (msgspec.DecodeError, KeyError):
        return CallFailed(
            f"{response.url} answered {response.status_code} and no reason: is that Pagetoll?"
        )
    return CallFailed(sentence, code=code, passing=code in PASSING)


def reason_of(error: Exception) -> str:
    return str(error).rstrip(".") or type(error).__name__


def fail(sentence: str, *, code: str = "") -> NoReturn:
    """Ends the command with exit code 1."""
    suffix = f" ({code})" if code else ""
    click.echo(output.plain(f"pagetoll: {sentence}{suffix}"), err=True)
    sys.exit(1)
