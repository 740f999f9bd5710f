"""Starts the gateway: python -m gateway."""

import math
import sys

from granian import Granian
from granian.constants import Interfaces, Loops
from granian.log import LogLevels

from runtime import settings
from runtime.process import BAD_SETTINGS
from runtime.settings import Settings, SettingsError

BACKLOG = 4_096
CONNECTIONS_MAX = 16_384
"""Connections served at a time, idle ones included: a thousand that say nothing must not matter."""


def serve(chosen: Settings) -> None:
    """One child process serves; when told to stop it finishes what it has begun."""
    Granian(
        "gateway.app:served",
        factory=True,
        address=chosen.host,
        port=chosen.port,
        interface=Interfaces.ASGI,
        workers=1,
        loop=Loops.uvloop,
        websockets=False,
        backlog=BACKLOG,
        backpressure=CONNECTIONS_MAX,
        log_access=False,
        log_level=LogLevels.warning,
        workers_kill_timeout=max(1, math.ceil(chosen.drain_seconds)),
    ).serve()


def main() -> int:
    try:
        chosen = settings.load()
        settings.need_servers(chosen)
    except SettingsError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the log is not set up yet
        return BAD_SETTINGS
    serve(chosen)
    return 0


if __name__ == "__main__":
    sys.exit(main())
