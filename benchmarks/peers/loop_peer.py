"""A bare crawl loop: aiohttp, lexbor, html-to-markdown, JSONL: python loop_peer.py URL OUT."""

import asyncio
import json
import sys
import time
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import aiohttp
import uvloop
from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from selectolax.lexbor import LexborHTMLParser

CONCURRENCY = 32
url, out = sys.argv[1:]
host = urlsplit(url).netloc
# What the workers give their converter.
options = ConversionOptions(
    extract_metadata=False,
    inline_data_media="alt_text_only",
    preprocessing=PreprocessingOptions(enabled=False),
    tier_strategy="tier1",
)


async def crawl(file):
    waiting, seen, count = asyncio.Queue(), {url}, 0
    waiting.put_nowait(url)

    async def work(session):
        nonlocal count
        while True:
            page = await waiting.get()
            async with session.get(page) as response:
                status, body = response.status, await response.read()
            count += 1
            text = body.decode("utf-8", "replace")
            tree = LexborHTMLParser(text)
            title = tree.css_first("title")
            links = []
            for node in tree.css("a[href]"):
                link = urljoin(page, node.attributes["href"] or "").partition("#")[0]
                links.append(link)
                if link not in seen:
                    parts = urlsplit(link)
                    if parts.netloc == host and parts.scheme in ("http", "https"):
                        seen.add(link)
                        waiting.put_nowait(link)
            row = {
                "url": page,
                "status": status,
                "title": title.text() if title else "",
                "links": links,
                "markdown": convert(text, options).content,
            }
            file.write(json.dumps(row) + "\n")
            waiting.task_done()

    connector = aiohttp.TCPConnector(limit=CONCURRENCY)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar()
    ) as session:
        workers = asyncio.gather(*(work(session) for _ in range(CONCURRENCY)))
        done = asyncio.ensure_future(waiting.join())
        await asyncio.wait({workers, done}, return_when=asyncio.FIRST_COMPLETED)
        if workers.done():
            workers.result()
        workers.cancel()
        await asyncio.gather(workers, return_exceptions=True)
    return count


began, cpu_began = time.perf_counter(), time.process_time()
with Path(out).open("w", encoding="utf-8") as file:
    pages = uvloop.run(crawl(file))
seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu_began
# VmHWM, as ru_maxrss begins with what the parent had.
lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
peak_kib = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(
    json.dumps(
        {"pages": pages, "seconds": seconds, "cpu_seconds": cpu_seconds, "peak_kib": peak_kib}
    )
)
