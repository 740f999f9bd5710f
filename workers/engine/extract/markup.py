"""The tokens of HTML source and the elements that a parser treats in their own way."""

import re

_VALUE = r"=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+)?+"
_ATTRIBUTES = rf"((?:[^>=]++|{_VALUE})*+)(?:>|\Z)"
ATTRIBUTE = re.compile(rf"[^\s/>=]++(?:\s*+{_VALUE})?+")
# Tags, without what comments and scripts hold. Whatever has no end reaches to the end of the
# text, so that each character is read once. Groups: the name of an element that holds raw text
# and its attributes, or the slash of an end tag, a tag's name and its attributes.
TOKEN = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))|<[!?][^>]*+>?"
    rf"|<(script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\s/>]){_ATTRIBUTES}"
    r".*?(?:</\1(?=[\s/>])[^>]*+>?|\Z)"
    rf"|<(/?)([a-z][^\s/>]*+){_ATTRIBUTES}",
    re.DOTALL | re.IGNORECASE,
)
START = re.compile(r"<[a-z]", re.IGNORECASE)
SCRIPT_START = re.compile(r"<script[\s/>]", re.IGNORECASE)
# A start tag that surely ends itself, where it may: the slash belongs to no value.
ENDS_ITSELF = re.compile(r"(?:\s++[^\s=>/\"']++(?:=(?:\"[^\"]*+\"|'[^']*+'))?+)*+\s*+/")

UNNESTED = frozenset(["area", "base", "br", "col", "embed", "hr", "img", "input"]).union(
    ["link", "meta", "p", "param", "source", "track", "wbr"]
)
MERGED = frozenset({"html", "body"})
"""The attributes of every such tag in the text end up on one element."""
DRAWINGS = frozenset({"svg", "math"})
"""Elements with rules of their own inside: any of them may end itself with a slash."""
LEAVING = frozenset(
    [
        "b",
        "big",
        "blockquote",
        "body",
        "br",
        "center",
        "code",
        "dd",
        "div",
        "dl",
        "dt",
        "em",
        "embed",
    ]
).union(
    [
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "head",
        "hr",
        "i",
        "img",
        "li",
        "listing",
        "menu",
        "meta",
        "nobr",
        "ol",
        "p",
        "pre",
        "ruby",
        "s",
    ],
    ["small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var", "font"],
    ["title", "desc", "foreignobject", "mi", "mo", "mn", "ms", "mtext", "annotation-xml"],
)
"""Start tags after which a parser may be out of the drawing (HTML, 13.2.6.5)."""
FORMATTING = frozenset(
    [
        "a",
        "b",
        "big",
        "code",
        "em",
        "font",
        "i",
        "nobr",
        "s",
        "small",
        "strike",
        "strong",
        "tt",
        "u",
    ]
)
"""Elements that a parser opens anew in each block until they are ended (HTML, 13.2.4.3)."""
FOLLOWED = FORMATTING | DRAWINGS | {"select"}
FORMATTING_START = re.compile(
    r"<(a|b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])[^>]*+", re.IGNORECASE
)
ENDS = {
    "li": ("li",),
    "dt": ("dt", "dd"),
    "dd": ("dt", "dd"),
    "option": ("option",),
    "td": ("td", "th"),
    "th": ("td", "th"),
    "tr": ("td", "th", "tr"),
}
"""An element whose end tag may be left out, and the open ones that its like ends."""
