"""The pages follow the code: generated ones are fresh, links and named files exist."""

import re
from pathlib import Path

import pytest

from docs import generate

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"`((?:[a-z_]+/)+[\w.]+\.(?:py|sql|lua|yaml|yml|json|md))`")


def test_generated_pages_are_fresh() -> None:
    assert generate.stale() == [], "run: python -m docs.generate"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = [
        link
        for link in LINK.findall(prose(page))
        if not link.startswith(("http://", "https://")) and not leads_somewhere(page, link)
    ]

    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    """Only paths from the root are looked for; NNNN stands for a number to choose."""
    named = [name for name in NAMED.findall(prose(page)) if (ROOT / name.split("/")[0]).is_dir()]

    assert [name for name in named if "NNNN" not in name and not (ROOT / name).exists()] == []


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def leads_somewhere(page: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    return {slug(heading) for heading in HEADING.findall(prose(page))}


def slug(heading: str) -> str:
    """A heading's anchor as code forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
