"""The pagetoll command: one file per noun, no logic of its own."""
