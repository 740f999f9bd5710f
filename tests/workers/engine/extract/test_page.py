"""A whole page: every format from one body."""

import gzip
import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from jobs import urls
from jobs.addresses import AddressPolicy
from workers.engine.extract import page
from workers.engine.extract.page import ExtractOptions
from workers.engine.outcomes import FetchFailed

ARTICLES = Path(os.environ.get("PAGETOLL_SUITES", "../shared/suites")) / "articles"
URL = urls.parse_target("https://example.com/docs/page", policy=AddressPolicy())
ALL = ExtractOptions(formats=page.FORMATS)
BODY = """<!doctype html><html lang="en"><head><title>Tolls</title>
<link rel="canonical" href="/docs/tolls"><meta name="robots" content="noindex">
<script>track()</script></head><body><header><a href="/">Home</a></header>
<main><h1>Tolls</h1><p>Pay <a href="once" rel="nofollow">once</a>.<img src="t.png" alt="t"></p>
<p><a href="javascript:pay()">Pay</a></p></main><footer>Foot</footer></body></html>"""


def extract(body, content_type="text/html; charset=utf-8", options=ALL):
    content = body.encode() if isinstance(body, str) else body
    return page.extract_page(content, content_type=content_type, url=URL, options=options)


def test_every_format_comes_from_one_body():
    made = extract(BODY)
    assert made.title == "Tolls"
    assert made.markdown == (
        "# Tolls\n\nPay [once](https://example.com/docs/once)."
        "![t](https://example.com/docs/t.png)\n\nPay\n"
    )
    assert made.text == "Tolls\n\nPay once.t\n\nPay\n"
    assert made.raw_html == BODY
    assert made.html.startswith("<main><h1>Tolls</h1>")
    assert 'href="https://example.com/docs/once"' in made.html
    assert 'src="https://example.com/docs/t.png"' in made.html
    assert "javascript:" not in made.html
    assert [link.target.path for link in made.links] == ["/", "/docs/once"]
    assert made.canonical == "https://example.com/docs/tolls"
    assert (made.noindex, made.nofollow) == (True, False)
    assert made.metadata["language"] == "en"


def test_the_whole_page_is_kept_when_asked_for():
    options = ExtractOptions(formats=frozenset({"markdown", "html"}), only_main_content=False)
    made = extract(BODY, options=options)
    assert "Home" in made.markdown
    assert "Foot" in made.markdown
    assert "track" not in made.html


def test_only_the_formats_asked_for_are_made():
    made = extract(BODY, options=ExtractOptions(formats=frozenset({"links"})))
    assert (made.markdown, made.html, made.raw_html, made.text) == (None, None, None, None)
    assert len(made.links) == 2


@pytest.mark.parametrize(
    ("body", "content_type", "markdown"),
    [
        ("plain *text*", "text/plain", "plain *text*"),
        ("# Title", "text/markdown", "# Title"),
        ('{"a": 1}', "application/json", '```json\n{"a": 1}\n```\n'),
        ("<a>b</a>", "application/xml", "```xml\n<a>b</a>\n```\n"),
        ("a\0b", "text/plain", "ab"),
    ],
)
def test_other_texts_stay_as_they_are(body, content_type, markdown):
    made = extract(body, content_type)
    assert made.markdown == markdown
    assert made.text == body.replace("\0", "")
    assert made.links == ()


def test_other_types_are_refused():
    with pytest.raises(FetchFailed) as refused:
        extract(b"%PDF-1.7", "application/pdf")
    assert refused.value.reason == "unsupported_content_type"


@pytest.mark.parametrize(
    "body",
    [
        "",
        "\0",
        "<",
        "<html>",
        "<frameset><frame src=x></frameset>",
        "<body><body><main><main>",
        "text only",
        "<title>\0</title>&#0;&#xD800;",
        "<a href='http://[::'>x</a><base href='http://%zz/'>",
        "<b><i></b></i>" * 500,
    ],
)
def test_broken_pages_are_read_as_browsers_do(body):
    made = extract(body)
    assert "\0" not in json.dumps(msgspec.to_builtins(made), ensure_ascii=False)
    assert msgspec.json.decode(msgspec.json.encode(made))


def test_a_page_gives_the_same_in_every_thread():
    expected = extract(BODY)
    with ThreadPoolExecutor(4) as pool:
        assert all(made == expected for made in pool.map(extract, [BODY] * 200))


@pytest.fixture(scope="module")
def articles():
    if not ARTICLES.is_dir():
        pytest.skip("the articles suite is not there (PAGETOLL_SUITES)")
    truth = json.loads((ARTICLES / "ground-truth.json").read_text())
    return [
        (gzip.decompress((ARTICLES / "html" / f"{key}.html.gz").read_bytes()), each["articleBody"])
        for key, each in truth.items()
    ]


def shingles(text):
    words = re.findall(r"\w+", text)
    return {tuple(words[at : at + 4]) for at in range(max(1, len(words) - 3))}


def test_the_articles_of_real_pages_are_kept(articles):
    recalls, precisions = [], []
    for body, article in articles:
        wanted, got = shingles(article), shingles(extract(body).text)
        recalls.append(len(wanted & got) / len(wanted))
        precisions.append(len(wanted & got) / len(got))
    assert sum(recalls) / len(recalls) > 0.97
    assert sum(precisions) / len(precisions) > 0.65
