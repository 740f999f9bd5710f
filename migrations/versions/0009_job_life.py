"""Step 0009: see sql/0009_job_life.up.sql."""

from migrations import steps

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    steps.run("0009_job_life.up.sql")


def downgrade() -> None:
    steps.run("0009_job_life.down.sql")
