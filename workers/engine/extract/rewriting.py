"""Makes a tree's addresses absolute, so that its HTML can be read elsewhere."""

from jobs import urls
from jobs.addresses import AddressPolicy
from jobs.urls import Target
from workers.engine.extract import links
from workers.engine.extract.html import LexborNode

_HOLDERS = "a[href],area[href],img[src],source[src],video[src],audio[src]"
# With white space, dot segments and a fragment; what is longer, as pictures are, is not parsed.
WRITTEN_CHARACTERS_MAX = 4 * urls.URL_LIMIT_BYTES


def make_absolute(node: LexborNode, base: Target, *, policy: AddressPolicy, growth: int) -> bool:
    """Addresses that may not be fetched stay as they are written; fragments are kept.

    A long base and many short addresses make much of little: once the tree has grown by
    `growth` characters the other addresses stay relative, and the answer is False.
    """
    for holder in node.css(_HOLDERS):
        name = "href" if "href" in holder.attrs else "src"
        written = holder.attrs[name] or ""
        is_short = len(written) <= WRITTEN_CHARACTERS_MAX
        target = links.resolve(base, written, policy=policy) if is_short else None
        if target is None:
            # The converter may join what we did not.
            growth -= len(base.url)
        else:
            _, hash_sign, fragment = written.partition("#")
            absolute = f"{target.url}{hash_sign}{fragment}"
            growth -= max(0, len(absolute) - len(written))
            holder.attrs[name] = absolute
        if growth < 0:
            return False
    return True
