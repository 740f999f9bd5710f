"""The command `pagetoll`; every noun has a file of its own."""

import rich_click as click

from cli import demo, up


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Pagetoll: crawls that are metered by the page."""


main.add_command(up.up)
main.add_command(demo.demo)

if __name__ == "__main__":
    main()
