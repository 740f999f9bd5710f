"""What is left of a page when its surroundings are gone."""

import pytest

from workers.engine.extract import html, main_content


def words(markup):
    node = main_content.reduce(html.parse(markup))
    return html.collapse(node.text(separator=" ")) if node is not None else None


@pytest.mark.parametrize(
    "surrounding",
    [
        "<nav>x</nav>",
        "<header><nav>x</nav></header>",
        "<footer>x</footer>",
        "<aside>x</aside>",
        "<form><input><button>x</button></form>",
        "<script>x</script><style>x</style><noscript>x</noscript>",
        "<svg><text>x</text></svg>",
        "<dialog open>x</dialog>",
        "<div role=navigation>x</div>",
        "<div role=dialog>x</div>",
        "<span aria-hidden=true>x</span>",
        "<div hidden>x</div>",
        "<template>x</template>",
        "<button>x</button>",
        "<!-- x -->",
    ],
)
def test_surroundings_are_dropped(surrounding):
    assert words(f"<body>{surrounding}<div><p>kept</p>{surrounding}</div>") == "kept"


@pytest.mark.parametrize(
    ("markup", "kept"),
    [
        ("<div>out</div><main><p>in</p></main>", "in"),
        ("<div>out</div><div role=main><p>in</p></div>", "in"),
        ("<div>out</div><article><p>in</p></article>", "in"),
        ("<main>a<article>in</article></main>", "a in"),
        ("<h1>all</h1><article>one</article><article>two</article>", "all one two"),
        ("<p>body</p><main> </main>", "body"),
        ("<article><header><h1>title</h1></header><p>in</p></article>", "title in"),
        ("<h2><button>folded</button></h2><p>in</p>", "folded in"),
        ("<body hidden aria-hidden=true><p>in</p>", "in"),
        ("<main aria-hidden=true><p>in</p></main>", "in"),
        ("<p aria-hidden=false role=note>in</p>", "in"),
        ("", ""),
    ],
)
def test_the_content_is_found(markup, kept):
    assert words(markup) == kept


def test_a_form_around_the_whole_page_is_no_form():
    text = "word " * 200
    assert words(f"<form><input><p>{text}</p></form>") == text.strip()


def test_without_reduction_only_machinery_goes():
    node = main_content.strip_machinery(
        html.parse("<nav>menu</nav><script>x</script><svg>y</svg><p>text</p><footer>foot</footer>")
    )
    assert html.collapse(node.text(separator=" ")) == "menu text foot"
