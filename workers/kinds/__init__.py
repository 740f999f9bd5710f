"""One file per kind of job; KINDS maps the word to it."""

from jobs.vocabulary import Kind as KindName
from workers.kinds.crawl import CRAWL
from workers.kinds.kind import Kind

KINDS: dict[KindName, Kind] = {"crawl": CRAWL}
