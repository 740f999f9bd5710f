"""Measures the system against Scrapy and a bare loop: python -m benchmarks."""
