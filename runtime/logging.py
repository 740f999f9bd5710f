"""structlog for all processes: one event and its fields a line, JSON or for a terminal."""

import json
import logging
import sys
from collections.abc import MutableMapping
from typing import Any, TextIO, cast

import structlog

from runtime.settings import Settings


class LossyLog:
    """A stream that loses lines where it cannot be written, on a full disk say, and stops nobody.

    When it can be written again, it says how many were lost.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lost = 0

    def write(self, text: str) -> int:
        try:
            if self._lost:
                self._stream.write(json.dumps({"event": "log_lines_lost", "lines": self._lost}))
                self._stream.write("\n")
                self._stream.flush()
                self._lost = 0
            self._stream.write(text)
        except OSError:
            self._lost += 1
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            self._lost += 1


SECRET_FIELDS = frozenset({"authorization", "x-api-key", "secret", "password", "key", "cookie"})


def configure(settings: Settings, *, process: str) -> None:
    """Sets up structlog and the standard library's logging alike; call once, at start."""
    as_json = settings.log_format == "json" or (
        settings.log_format == "auto" and not sys.stderr.isatty()
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
        structlog.processors.StackInfoRenderer(),
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if as_json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    if as_json:
        shared.append(structlog.processors.format_exc_info)
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=cast(TextIO, LossyLog(sys.stderr))),
        cache_logger_on_first_use=False,
    )
    structlog.contextvars.bind_contextvars(process=process)
    _adopt_standard_library(level, [*shared, renderer])


def hide_secrets(
    _logger: Any,  # noqa: ANN401 # structlog's own signature
    _method: str,
    event: MutableMapping[str, Any],
) -> MutableMapping[str, Any]:
    """The last guard: a field that names a secret never reaches the log."""
    for name in event:
        if name.lower() in SECRET_FIELDS:
            event[name] = "(hidden)"
    return event


def _adopt_standard_library(level: int, processors: list[structlog.typing.Processor]) -> None:
    handler = logging.StreamHandler(LossyLog(sys.stderr))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=processors[:-1],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                processors[-1],
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
