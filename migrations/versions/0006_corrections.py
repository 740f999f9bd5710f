"""Step 0006: see sql/0006_corrections.up.sql."""

from migrations import steps

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    steps.run("0006_corrections.up.sql")


def downgrade() -> None:
    steps.run("0006_corrections.down.sql")
