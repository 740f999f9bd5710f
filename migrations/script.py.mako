"""${message}."""

from migrations import steps

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    steps.run("${up_revision}_${message}.up.sql")


def downgrade() -> None:
    steps.run("${up_revision}_${message}.down.sql")
