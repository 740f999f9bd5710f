"""The HTTP front: one core and the native API."""
