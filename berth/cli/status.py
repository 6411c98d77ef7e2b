# SPDX-License-Identifier: Apache-2.0
"""`berth status`: may this release serve, or does something have to be done first?"""

import click

from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.options import ConfigurationSource, configured


@click.command()
@click.option("--json", "as_json", is_flag=True, help="For programs: a list of checks.")
@click.option(
    "--url",
    help="The service that is expected to answer; if it does not, that is a failure.  [default: "
    f"{DEFAULT_HOST}:{DEFAULT_PORT}, where none need answer]",
)
@configured
def status(source: ConfigurationSource, as_json: bool, url: str | None) -> None:
    """Check whether this release can serve with the configuration and the database as they are.

    Says which database that is, and whether a service answers.

    Exit code: 0 all is well, 1 a warning, 2 a failure, 255 it cannot be checked.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.status_checks import print_status

    print_status(source, as_json=as_json, url=url)
