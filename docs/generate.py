"""Makes the generated pages of docs/ from the code: python -m docs.generate [--check]."""

import ast
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta
from prometheus_client import Counter, Gauge, Histogram

import accounting.metrics
import gateway.metrics
import workers.metrics
from docs.places import PLACES
from jobs import lifecycle
from jobs.vocabulary import FINAL_STATES
from runtime import settings
from runtime.settings import Settings

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PACKAGES = (
    "runtime",
    "jobs",
    "accounting",
    "workers",
    "gateway",
    "migrations",
    "cli",
    "docs",
    "tests/support",
)
METRIC_MODULES = (gateway.metrics, workers.metrics, accounting.metrics)
WRITTEN_BY = "<!-- Written by `python -m docs.generate`; change the code, not this page. -->\n"
SUFFIXES: dict[str, tuple[str, ...]] = {
    "counter": ("",),
    "gauge": ("",),
    "histogram": ("_bucket", "_count", "_sum"),
}
"""What Prometheus appends to a metric's name for each of its series."""


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A metric as a process serves it."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str
    module: str

    @property
    def series(self) -> tuple[str, ...]:
        """The names that an expression may use."""
        return tuple(self.name + suffix for suffix in SUFFIXES[self.kind])


def settings_page() -> str:
    hints = get_type_hints(Settings, include_extras=True)
    told = field_docs(Settings)
    defaults = Settings()
    rows = [
        (
            f"`{settings.PREFIX}{field.upper()}`",
            kind_of(hints[field]),
            shown(getattr(defaults, field)),
            told[field],
        )
        for field in Settings.__struct_fields__
    ]
    return (
        f"# Settings\n\n{WRITTEN_BY}\n"
        "Every process reads these environment variables once, when it starts. A wrong value or a\n"
        "misspelt name stops it with one sentence for each fault and exit code 2.\n\n"
        f"{table(('variable', 'type', 'default', 'meaning'), rows)}\n"
        "## Read by other parts\n\n"
        "These are no settings of a process; the command line's client side and the tests use\n"
        f"them: {', '.join(f'`{name}`' for name in sorted(settings.ELSEWHERE))}.\n"
    )


def metrics_page() -> str:
    text = (
        f"# Metrics\n\n{WRITTEN_BY}\n"
        "The gateway serves `/metrics` on its own port; a worker and the ledger process serve it\n"
        "on `PAGETOLL_WORKER_METRICS_PORT` and `PAGETOLL_LEDGER_METRICS_PORT`. Labels are closed\n"
        "word lists: no tenant, no URL, no host. What each process' Python runtime tells besides\n"
        "(`process_…`, `python_…`) is not listed.\n"
    )
    for module in METRIC_MODULES:
        rows = [
            (f"`{one.name}`", one.kind, ", ".join(one.labels) or "none", one.help)
            for one in metrics_of(module)
        ]
        text += (
            f"\n## `{module.__name__}`\n\n{caption(Path(inspect.getfile(module)))}\n\n"
            f"{table(('metric', 'type', 'labels', 'meaning'), rows)}"
        )
    return text


def tree_page() -> str:
    rows = [(question, f"`{place}`") for question, place in PLACES]
    text = (
        f"# Where things are\n\n{WRITTEN_BY}\n"
        f"## Where is …?\n\n{table(('question', 'place'), rows)}\n"
        "## Every module and its caption\n\n"
        "A `.sql` or `.lua` file beside a module of the same name holds what that module runs.\n"
        "Tests mirror the packages: `tests/<package>/test_<module>.py`.\n"
    )
    for package in PACKAGES:
        lines = [f"- `{name}`: {sentence}" for name, sentence in captions(package)]
        text += f"\n### {package}/\n\n" + "\n".join(lines) + "\n"
    return text


def states_page() -> str:
    lines = ["stateDiagram-v2", "    [*] --> queued"]
    for before, followers in lifecycle.FOLLOWERS.items():
        lines += [f"    {before} --> {after}" for after in sorted(followers)]
    lines += [f"    {final} --> [*]" for final in sorted(FINAL_STATES)]
    diagram = "\n".join(lines)
    return (
        f"# The states of a job\n\n{WRITTEN_BY}\n"
        "Drawn from `jobs/lifecycle.py`; PostgreSQL refuses every other change.\n\n"
        f"```mermaid\n{diagram}\n```\n"
    )


PAGES: dict[str, Callable[[], str]] = {
    "settings.md": settings_page,
    "metrics.md": metrics_page,
    "tree.md": tree_page,
    "states.md": states_page,
}


def stale() -> list[str]:
    """The names of generated pages that the code has left behind."""
    return [name for name, made in PAGES.items() if on_disk(name) != made()]


def write() -> None:
    for name, made in PAGES.items():
        (DOCS / name).write_text(made(), encoding="utf-8")


def metrics() -> list[Metric]:
    """Every metric of every process."""
    return [one for module in METRIC_MODULES for one in metrics_of(module)]


def metrics_of(module: ModuleType) -> Iterator[Metric]:
    for value in vars(module).values():
        if isinstance(value, Counter | Gauge | Histogram):
            told = next(iter(value.describe()))
            is_counter = told.type == "counter"
            yield Metric(
                name=told.name + ("_total" if is_counter else ""),
                kind=msgspec.convert(told.type, Literal["counter", "gauge", "histogram"]),
                labels=tuple(value._labelnames),  # noqa: SLF001 # the library tells them nowhere else
                help=told.documentation,
                module=module.__name__,
            )


def field_docs(struct: type) -> dict[str, str]:
    """The string below each field of a class, which Python itself does not keep."""
    (body,) = ast.parse(inspect.getsource(struct)).body
    assert isinstance(body, ast.ClassDef)
    told = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            told[ast.unparse(field.target)] = ast.literal_eval(text.value)
    return told


def kind_of(hint: object) -> str:
    """A type and its bounds in words."""
    if get_origin(hint) is not Annotated:
        return getattr(hint, "__name__", str(hint))
    kind, *rest = get_args(hint)
    bounds = [bound for meta in rest if isinstance(meta, Meta) for bound in bounds_of(meta)]
    return f"{kind.__name__}, {', '.join(bounds)}"


def bounds_of(meta: Meta) -> Iterator[str]:
    for sign, bound in ((">=", meta.ge), (">", meta.gt), ("<=", meta.le), ("<", meta.lt)):
        if bound is not None:
            yield f"{sign} {bound:,}"


def shown(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"`{value}`" if value != "" else "(empty)"


def captions(package: str) -> Iterator[tuple[str, str]]:
    """Each module of a package with the sentence it opens with."""
    folder = ROOT / package
    for file in sorted(folder.rglob("*.py")):
        if file.name != "__init__.py" or file.stat().st_size:
            yield file.relative_to(folder).as_posix(), caption(file)
    for functions in sorted(folder.glob("*functions.sql")):
        yield functions.name, sql_caption(functions)


def caption(file: Path) -> str:
    told = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return told.partition("\n")[0]


def sql_caption(file: Path) -> str:
    """The first sentence of the comment that opens an SQL file."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("-- "):
            break
        lines.append(line.removeprefix("-- "))
    return re.split(r"(?<=\.) ", " ".join(lines))[0]


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(cell, line))} |\n" for line in lines)


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def on_disk(name: str) -> str | None:
    try:
        return (DOCS / name).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None


def main(arguments: list[str]) -> int:
    if arguments != ["--check"]:
        write()
        return 0
    names = stale()
    if names:
        sys.stderr.write(f"Out of date: {', '.join(names)}. Run: python -m docs.generate\n")
    return 1 if names else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
