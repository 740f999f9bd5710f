"""Reads the .sql file beside a module into named queries with numbered parameters."""

import re
from pathlib import Path

HEADER = re.compile(r"^-- name: (?P<name>\w+)\((?P<parameters>[^)]*)\)$", re.MULTILINE)


class Queries:
    """Each block of the file is an attribute: `SQL.lots` is the block `-- name: lots(…)`."""

    def __init__(self, texts: dict[str, str]) -> None:
        self._texts = texts

    def __getattr__(self, name: str) -> str:
        try:
            return self._texts[name]
        except KeyError:
            raise AttributeError(name) from None

    def items(self) -> list[tuple[str, str]]:
        return list(self._texts.items())


def beside(python_file: str) -> Queries:
    """The queries of the .sql twin of a module; `:name` becomes the number of its parameter."""
    text = Path(python_file).with_suffix(".sql").read_text(encoding="utf-8")
    headers = list(HEADER.finditer(text))
    ends = [header.start() for header in headers[1:]] + [len(text)]
    return Queries(
        {
            header["name"]: _numbered(text[header.end() : end], header["parameters"])
            for header, end in zip(headers, ends, strict=True)
        }
    )


def _numbered(body: str, parameters: str) -> str:
    names = [name.strip() for name in parameters.split(",") if name.strip()]
    for number, name in enumerate(names, 1):
        body, found = re.subn(rf"(?<!:):{name}\b", f"${number}", body)
        assert found, f"parameter {name} is not used"
    return body.strip().rstrip(";")
