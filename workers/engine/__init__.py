"""Crawling as plain parts: no money, no queue, no database."""
