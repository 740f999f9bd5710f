"""Step 0007: see sql/0007_statements.up.sql."""

from migrations import steps

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    steps.run("0007_statements.up.sql")


def downgrade() -> None:
    steps.run("0007_statements.down.sql")
