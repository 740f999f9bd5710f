"""The one place that knows the HTML to Markdown converter and its options."""

import re

from html_to_markdown import (
    ConversionOptions,
    InvalidInputError,
    PreprocessingOptions,
    convert,
)

from workers.engine.extract import content_types
from workers.engine.extract.render_cost import TableStyle

_BACKTICKS = re.compile(r"`{3,}")
# The converter's own clean-up took whole pages away that stand in a form; ours is done before.
_NO_CLEANUP = PreprocessingOptions(enabled=False)


def from_html(fragment: str, *, base_url: str | None, tables: TableStyle = "padded") -> str:
    """Markdown with absolute links and images; pictures inlined as data: become their text.

    Without `base_url` addresses stay as they are. Raises FetchFailed
    (`unsupported_content_type`, `binary`) for what holds no text.
    """
    # The first tier pads columns whatever it is asked for.
    if tables == "compact":
        return _convert(fragment, base_url, "tier2", compact=True)
    # The first tier takes half the time, and gives the second one's text on trees that a parser
    # wrote out again. Should it ever give nothing, the second one has the last word.
    return _convert(fragment, base_url, "tier1") or _convert(fragment, base_url, "tier2")


def plain_text(fragment: str) -> str:
    """The text with one blank line between blocks and no markup."""
    # The first tier writes Markdown whatever it is asked for.
    return _convert(fragment, None, "tier2", output="plain")


def fenced(text: str, language: str) -> str:
    """A code block whose fence is longer than any in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _convert(
    fragment: str,
    base_url: str | None,
    tier: str,
    *,
    output: str = "markdown",
    compact: bool = False,
) -> str:
    options = ConversionOptions(
        base_url=base_url,
        compact_tables=compact,
        output_format=output,
        extract_metadata=False,
        inline_data_media="alt_text_only",
        preprocessing=_NO_CLEANUP,
        tier_strategy=tier,
    )
    try:
        return convert(fragment, options).content or ""
    except InvalidInputError:
        raise content_types.binary() from None
