"""Step 0004: see sql/0004_isolation.up.sql."""

from migrations import steps

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    steps.run("0004_isolation.up.sql")


def downgrade() -> None:
    steps.run("0004_isolation.down.sql")
