"""The generated pages: what they are made of; hand-written ones agree with the code."""

import re
from pathlib import Path

import pytest

from accounting import reconciliation
from docs import generate
from docs.places import PLACES
from gateway import problems
from jobs import vocabulary
from jobs.requests import CrawlRequest
from runtime.settings import Settings

DOCS = Path(generate.__file__).parent
FIRST_CELL = re.compile(r"^\| `([^|]+)` \|", re.MULTILINE)


def first_cells(page: str, *, under: str = "") -> list[str]:
    """The words in the first column of the tables of a page, or of one of its sections."""
    text = (DOCS / page).read_text()
    if under:
        text = text.split(f"\n## {under}", 1)[1].split("\n## ", 1)[0]
    return [word.strip("`") for cell in FIRST_CELL.findall(text) for word in cell.split("`, `")]


def test_every_setting_is_told_with_its_docstring():
    page = generate.settings_page()
    told = generate.field_docs(Settings)
    assert set(told) == set(Settings.__struct_fields__)
    for field, sentence in told.items():
        assert f"`PAGETOLL_{field.upper()}`" in page
        assert generate.cell(sentence) in page


def test_bounds_and_defaults_are_told():
    assert "| `PAGETOLL_PORT` | int, >= 0, <= 65,535 | `8000` |" in generate.settings_page()
    assert "| `PAGETOLL_ARQ` | bool | on |" in generate.settings_page()


def test_a_metric_is_named_as_it_is_served():
    found = {one.name: one for one in generate.metrics()}
    assert found["pagetoll_refusals_total"].kind == "counter"
    assert found["pagetoll_refusals_total"].labels == ("code",)
    assert "pagetoll_queue_age_seconds_bucket" in found["pagetoll_queue_age_seconds"].series


@pytest.mark.parametrize("place", [place for _, place in PLACES])
def test_a_place_that_answers_a_question_exists(place: str):
    assert (generate.ROOT / place).is_file()


def test_every_module_has_its_caption_in_the_tree():
    for package in generate.PACKAGES:
        for name, caption in generate.captions(package):
            assert caption, f"{package}/{name}"


def test_a_page_that_the_code_has_left_behind_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(generate, "PAGES", {"settings.md": lambda: "something newer"})
    assert generate.stale() == ["settings.md"]


def test_the_money_page_lists_every_invariant_in_order():
    assert first_cells("money.md", under="What is proved") == [
        name for name, _ in reconciliation.SQL.items()
    ]


def test_the_reasons_page_has_every_word_of_the_contract_once():
    for heading, words in (
        ("Reasons", vocabulary.Reason),
        ("Warnings of a job", vocabulary.WarningCode),
        ("How a job ends", vocabulary.CompletionReason),
    ):
        assert first_cells("reasons.md", under=heading) == list(words.__args__)


def test_the_api_page_has_every_field_of_a_crawl():
    text = (DOCS / "api.md").read_text()
    for field in CrawlRequest.__struct_fields__:
        assert f"`{field}`" in text


def test_the_api_page_has_every_code_that_this_version_answers_with():
    text = (DOCS / "api.md").read_text().split("\n## Errors", 1)[1].split("\n## ", 1)[0]
    never = {"unsupported_filter", "unknown_source", "invalid_state"}
    for code in set(problems.STATUS_OF) - never:
        assert f"`{code}`" in text, code


def test_every_relative_link_of_every_page_resolves():
    pages = [*DOCS.rglob("*.md"), *generate.ROOT.glob("*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            assert "://" in link or (page.parent / link).exists(), f"{page.name}: {link}"
