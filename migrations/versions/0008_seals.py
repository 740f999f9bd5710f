"""Step 0008: see sql/0008_seals.up.sql."""

from migrations import steps

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    steps.run("0008_seals.up.sql")


def downgrade() -> None:
    steps.run("0008_seals.down.sql")
