"""The project's pages; three of them are made by docs/generate.py."""
