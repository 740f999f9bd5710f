"""Step 0002: see sql/0002_ledger.up.sql."""

from migrations import steps

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    steps.run("0002_ledger.up.sql")


def downgrade() -> None:
    steps.run("0002_ledger.down.sql")
