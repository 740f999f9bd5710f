"""HTML to Markdown as it is given to callers."""

import pytest

from workers.engine.extract import markdown

BASE = "https://example.com/docs/page"


@pytest.mark.parametrize(
    ("fragment", "text"),
    [
        ("<h2>A <em>b</em></h2><p>c</p>", "## A *b*\n\nc\n"),
        ('<a href="../x?y=1">z</a>', "[z](https://example.com/x?y=1)\n"),
        ('<p><img src="i.png" alt="pic"></p>', "![pic](https://example.com/docs/i.png)\n"),
        (
            '<pre><code class="language-python">x = 1\n  y</code></pre>',
            "```python\nx = 1\n  y\n```\n",
        ),
        ("<ol start=3><li>x<ul><li>y</li></ul></li></ol>", "3. x\n   - y\n"),
        (
            "<table><tr><th>a</th></tr><tr><td>b|c</td></tr></table>",
            "| a    |\n| ---- |\n| b\\|c |\n",
        ),
        ("<blockquote><p>q</p></blockquote>", "> q\n"),
        ("<p>a<br>b</p>", "a  \nb\n"),
        ("", ""),
    ],
)
def test_markup_becomes_markdown_with_absolute_addresses(fragment, text):
    assert markdown.from_html(fragment, base_url=BASE) == text


def test_a_page_inside_a_form_is_not_lost():
    fragment = "<body><form method=post><nav>menu</nav><p>text</p></form></body>"
    assert markdown.from_html(fragment, base_url=BASE).split() == ["menu", "text"]


def test_a_picture_in_the_address_is_left_out():
    picture = f'<p>a <img alt="dot" src="data:image/png;base64,{"A" * 5000}"> b</p>'
    assert len(markdown.from_html(picture, base_url=BASE)) < 100


def test_plain_text_has_no_markup():
    text = markdown.plain_text('<h1>A</h1><p>b <b>c</b> <a href="/d">e</a></p><ul><li>f</li></ul>')
    assert "*" not in text
    assert "/d" not in text
    assert text.split() == ["A", "b", "c", "e", "-", "f"]


@pytest.mark.parametrize(
    ("text", "fence"), [("{}", "```"), ("a ``` b", "````"), ("`````", "``````")]
)
def test_a_fence_is_longer_than_any_in_the_text(text, fence):
    assert markdown.fenced(text, "json") == f"{fence}json\n{text}\n{fence}\n"
