"""Refuses markup that would take a parser minutes or all memory, before it is parsed."""

import re

from workers.engine.extract import markup, size_limits

# A parser walks its stack of open elements at each tag and an element's attributes at each
# attribute, so both cost their square. Below this length that is at most about a second.
UNCHECKED_CHARACTERS = 65_536
TAGS_MAX = 500_000  # start and end tags: of an element and its text a tree keeps about 350 bytes
BUDGET = 50_000_000  # steps, of about 4 ns; a page of a megabyte needs some 20,000
# What the elements take that a parser opens anew in each block: `<b>` without an end, say.
COPIES_BUDGET = 200_000_000
_COPY_BYTES = 500  # of an element, besides its attributes
_COPY_TIMES = 2  # its attributes are in the tree and in the HTML that is made of it
_MOST_ALIKE = 3  # formatting elements that are opened anew (HTML, 13.2.4.3)
_MANY_ATTRIBUTES_CHARACTERS = 4_000
_MOST_LEFT_OUT = 3  # end tags in a row: of a cell, a row and an item


def check(text: str) -> None:
    """Raises FetchFailed (`limit_reached`, `too_large`) for what no real page has."""
    if text.count("<") > TAGS_MAX:
        raise size_limits.too_large(f"The page has more than {TAGS_MAX:,} tags.")
    if len(text) <= UNCHECKED_CHARACTERS and _copies_at_most(text) <= COPIES_BUDGET:
        return
    scan = _Scan()
    scan.read(text)
    if len(text) > UNCHECKED_CHARACTERS and scan.cost > BUDGET:
        raise size_limits.too_large("The page's elements are nested too deeply.")
    if scan.copies > COPIES_BUDGET:
        raise size_limits.too_large("The page's elements are not ended.")


def estimate(text: str) -> int:
    """About how many steps a parser needs besides those that grow with the length alone."""
    scan = _Scan()
    scan.read(text)
    return scan.cost


def estimate_copies(text: str) -> int:
    """About how many bytes of memory the elements take that a parser opens again and again."""
    scan = _Scan()
    scan.read(text)
    return scan.copies


def _copies_at_most(text: str) -> int:
    """A bound that is found fast: as if each start tag opened all formatting elements again."""
    starts = text.count("<")
    if _most_copies(text, starts) <= COPIES_BUDGET:
        return 0
    starts -= text.count("</")
    if _most_copies(text, starts) <= COPIES_BUDGET:
        return 0
    return (_formatting_bytes(text) + _COPY_BYTES) * starts


def _most_copies(text: str, starts: int) -> int:
    """Half of the start tags are formatting elements and the others open them again."""
    return starts * starts // 4 * _COPY_BYTES + starts * len(text) * _COPY_TIMES


def _formatting_bytes(text: str, at: int = 0) -> int:
    """What all elements take that may be opened again at once, as if none had an end."""
    anew = longest_link = 0
    alike: dict[str, int] = {}
    for tag in markup.FORMATTING_START.finditer(text, at):
        spelt = tag[0]
        if tag[1] in ("a", "A"):
            # A link ends the one before.
            longest_link = max(longest_link, len(spelt))
            continue
        alike[spelt] = alike.get(spelt, 0) + 1
        if alike[spelt] <= _MOST_ALIKE:
            anew += len(spelt) * _COPY_TIMES + _COPY_BYTES
    return anew + longest_link * _COPY_TIMES


class _Scan:
    """One pass over the tags, which takes nesting for deeper rather than for flatter than it is.

    `is_drawn` says that the last open element is surely a part of a drawing; `is_murky` that
    it cannot be told any more whether a drawing was left.
    """

    def __init__(self) -> None:
        self.cost = 0
        self.copies = 0
        self._merged = 0
        self._opened: list[str] = []
        self._drawings = 0
        self._selects = 0
        self._is_drawn = False
        self._is_murky = False
        self._outer: list[bool] = []
        self._carried = 0
        self._alike: dict[str, int] = {}
        self._weights: list[tuple[str, int]] = []

    def read(self, text: str) -> None:
        for token in markup.TOKEN.finditer(text):
            raw_name, raw_attributes, closing, spelt, attributes = token.groups()
            if spelt:
                self._tag(spelt.lower(), closing, attributes)
            elif raw_name:
                self._attributes(raw_name, raw_attributes)
            if not spelt and self._may_hide_tags(token, raw_name):
                # Nothing after it can be told from its inside: as if no tag had an end.
                at = token.start() + 1
                hidden = len(markup.START.findall(text, at))
                self.cost += hidden * (hidden + 2 * len(self._opened)) // 2
                self.copies += hidden * (self._carried + _formatting_bytes(text, at))
                return

    def _tag(self, name: str, closing: str, attributes: str) -> None:
        if len(attributes) > _MANY_ATTRIBUTES_CHARACTERS or name in markup.MERGED:
            self._attributes(name, attributes)
        opened = self._opened
        if closing:
            if opened and opened[-1] == name:
                self._pop()
            else:
                self._close(name)
            return
        if name in markup.ENDS:
            self._end_its_like(name)
        self.cost += len(opened)
        self.copies += self._carried
        if self._is_nested(name, attributes):
            opened.append(name)
            if name in markup.FOLLOWED:
                self._follow(name, attributes)

    def _end_its_like(self, name: str) -> None:
        if self._drawings or self._is_murky:
            return
        ended = markup.ENDS[name]
        while self._opened and self._opened[-1] in ended:
            self._opened.pop()

    def _attributes(self, name: str, attributes: str) -> None:
        """Where there is room for many they are counted."""
        if len(attributes) > _MANY_ATTRIBUTES_CHARACTERS:
            self.cost += len(markup.ATTRIBUTE.findall(attributes)) ** 2
        if name in markup.MERGED:
            self._merged += len(markup.ATTRIBUTE.findall(attributes))
            self.cost += self._merged

    def _is_nested(self, name: str, attributes: str) -> bool:
        if not self._drawings and not self._is_murky:
            return name not in markup.UNNESTED and not _draws_nothing(name, attributes)
        if name in markup.LEAVING:
            self._is_drawn = False
            self._is_murky = True
            return name not in markup.UNNESTED
        if name in markup.DRAWINGS:
            return not _draws_nothing(name, attributes)
        return not (self._is_drawn and markup.ENDS_ITSELF.fullmatch(attributes))

    def _follow(self, name: str, attributes: str) -> None:
        if name in markup.DRAWINGS:
            self._outer.append(self._is_drawn)
            self._drawings += 1
            self._is_drawn = True
        elif name == "select":
            self._selects += 1
        else:
            self._weigh(name + attributes)

    def _weigh(self, spelt: str) -> None:
        count = self._alike.get(spelt, 0) + 1
        self._alike[spelt] = count
        weight = len(spelt) * _COPY_TIMES + _COPY_BYTES if count <= _MOST_ALIKE else 0
        self._weights.append((spelt, weight))
        self._carried += weight

    def _pop(self) -> None:
        name = self._opened.pop()
        if name not in markup.FOLLOWED:
            return
        if name in markup.DRAWINGS:
            self._drawings -= 1
            self._is_drawn = self._outer.pop()
        elif name == "select":
            self._selects -= 1
        else:
            spelt, weight = self._weights.pop()
            self._alike[spelt] -= 1
            self._carried -= weight

    def _close(self, name: str) -> None:
        """An end tag that does not fit is ignored, as a parser may do the same."""
        for above in range(min(len(self._opened), _MOST_LEFT_OUT + 1)):
            last = self._opened[-1 - above]
            if last == name:
                for _ in range(above + 1):
                    self._pop()
                return
            if last not in markup.ENDS:
                break
        if self._drawings:
            self._is_drawn = False
            self._is_murky = True

    def _may_hide_tags(self, token: re.Match[str], raw_name: str | None) -> bool:
        """Whether a parser may read as tags what was passed over here."""
        whole = token[0]
        is_doubtful = self._drawings or self._is_murky
        if raw_name is None:
            return bool(is_doubtful) and whole.startswith("<![CDATA[")
        if raw_name.lower() == "script" and _ends_in_comment(whole):
            return True
        if not is_doubtful and (not self._selects or raw_name.lower() == "script"):
            return False
        return markup.START.search(whole, 1) is not None or "<!" in whole


def _ends_in_comment(script: str) -> bool:
    """A script named in a script's open comment: it does not end where it seems to."""
    comment = script.find("<!--", script.rfind("-->") + 1)
    return comment >= 0 and markup.SCRIPT_START.search(script, comment) is not None


def _draws_nothing(name: str, attributes: str) -> bool:
    return name in markup.DRAWINGS and markup.ENDS_ITSELF.fullmatch(attributes) is not None
