"""Follow links within scope, from the start URL and from the site's sitemaps."""

from workers.kinds.kind import Kind

CRAWL = Kind(
    uses_sitemaps=lambda request: request.sitemap != "skip",
    follows_links=lambda request: request.sitemap != "only",
)
