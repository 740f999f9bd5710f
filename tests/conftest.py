"""Fixtures that every test can ask for."""

pytest_plugins = [
    "tests.support.servers",
    "tests.support.database",
    "tests.support.site",
    "tests.support.workers",
]
