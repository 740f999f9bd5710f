"""Kinds of arguments that several commands take."""

import re
from pathlib import Path
from typing import Any

import rich_click as click
from typing_extensions import override

SHAPE = re.compile(r"[0-9A-Za-z-]{1,64}")


class Id(click.ParamType[str]):
    """An id of the API: never empty, and nothing that would change the path it is put in."""

    name = "id"

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if not SHAPE.fullmatch(text):
            self.fail(f"{text!r} is not an id.", param, ctx)
        return text


ID = Id()
FILE = click.Path(dir_okay=False, path_type=Path)
