"""The command `pagetoll`; every noun has a file of its own."""

import rich_click as click

from cli import (
    controls,
    corrections,
    crawl,
    credits,
    demo,
    disputes,
    doctor,
    jobs,
    keys,
    migrate,
    processes,
    reconcile,
    results,
    statement,
    tenants,
    up,
    verify,
)

COMMANDS = (
    up.up,
    demo.demo,
    doctor.doctor,
    crawl.crawl,
    jobs.jobs,
    jobs.status,
    results.results,
    controls.pause,
    controls.resume,
    controls.extend,
    controls.retry,
    jobs.cancel,
    credits.credits,
    corrections.refund,
    corrections.adjust,
    corrections.corrections,
    disputes.disputes,
    statement.statement,
    keys.key,
    tenants.tenant,
    reconcile.reconcile,
    reconcile.unfreeze,
    verify.verify,
    migrate.migrate,
    processes.gateway,
    processes.worker,
    processes.ledger,
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Pagetoll: crawls that are metered by the page."""


for command in COMMANDS:
    main.add_command(command)

if __name__ == "__main__":
    main()
