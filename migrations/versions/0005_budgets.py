"""Step 0005: see sql/0005_budgets.up.sql."""

from migrations import steps

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    steps.run("0005_budgets.up.sql")


def downgrade() -> None:
    steps.run("0005_budgets.down.sql")
