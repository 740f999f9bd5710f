"""Step 0010: see sql/0010_speed.up.sql."""

from migrations import steps

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    steps.run("0010_speed.up.sql")


def downgrade() -> None:
    steps.run("0010_speed.down.sql")
