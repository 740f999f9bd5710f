"""The native API, /v1 and /admin/v1."""
