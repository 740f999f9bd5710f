"""Step 0001: see sql/0001_tenants.up.sql."""

from migrations import steps

revision = "0001"
down_revision = None


def upgrade() -> None:
    steps.run("0001_tenants.up.sql")


def downgrade() -> None:
    steps.run("0001_tenants.down.sql")
