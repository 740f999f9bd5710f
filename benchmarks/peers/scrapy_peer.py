"""Scrapy on the bench site, links only, items to JSONL: python scrapy_peer.py URL OUT."""

import json
import sys
import time
from pathlib import Path

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor

CONCURRENCY = 32
url, out = sys.argv[1:]


class Bench(scrapy.Spider):
    name = "bench"
    allowed_domains = ["127.0.0.1"]
    extractor = LinkExtractor(allow=r"^http://127\.0\.0\.1[:/]")
    count = 0

    async def start(self):
        # start_urls would not be remembered, and the first page fetched twice.
        yield scrapy.Request(url)

    def parse(self, response):
        if not isinstance(response, scrapy.http.HtmlResponse):
            return
        Bench.count += 1
        links = [link.url for link in self.extractor.extract_links(response)]
        yield {
            "url": response.url,
            "status": response.status,
            "title": response.css("title::text").get(),
            "links": links,
        }
        for link in links:
            yield scrapy.Request(link)


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": CONCURRENCY,
        "CONCURRENT_REQUESTS_PER_DOMAIN": CONCURRENCY,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "RETRY_ENABLED": False,
        "COOKIES_ENABLED": False,
        "AUTOTHROTTLE_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "FEEDS": {out: {"format": "jsonlines", "overwrite": True}},
    }
)
process.crawl(Bench)
began, cpu_began = time.perf_counter(), time.process_time()
process.start()
seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
# VmHWM, as ru_maxrss begins with what the parent had.
status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
peak_kib = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(
    json.dumps(
        {"pages": Bench.count, "seconds": seconds, "cpu_seconds": cpu_seconds, "peak_kib": peak_kib}
    )
)
