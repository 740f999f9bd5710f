"""Step 0003: see sql/0003_jobs.up.sql."""

from migrations import steps

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    steps.run("0003_jobs.up.sql")


def downgrade() -> None:
    steps.run("0003_jobs.down.sql")
