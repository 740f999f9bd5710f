"""Makes a tree's addresses absolute, so that its HTML can be read elsewhere."""

from jobs.addresses import AddressPolicy
from jobs.urls import Target
from workers.engine.extract import links
from workers.engine.extract.html import LexborNode

_HOLDERS = "a[href],area[href],img[src],source[src],video[src],audio[src]"


def make_absolute(node: LexborNode, base: Target, *, policy: AddressPolicy) -> None:
    """Addresses that may not be fetched stay as they are written; fragments are kept."""
    for holder in node.css(_HOLDERS):
        name = "href" if "href" in holder.attrs else "src"
        written = holder.attrs[name] or ""
        target = links.resolve(base, written, policy=policy)
        if target is not None:
            _, hash_sign, fragment = written.partition("#")
            holder.attrs[name] = f"{target.url}{hash_sign}{fragment}"
