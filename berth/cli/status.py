# SPDX-License-Identifier: Apache-2.0
"""`berth status`: check whether this release can serve."""

import os

import click

from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.options import ConfigurationSource, configured


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--url",
    metavar="URL",
    help="The service that must answer.  [env var: BERTH_URL; default: that of client.yaml. If "
    f"nothing names a service, berth tries {DEFAULT_HOST}:{DEFAULT_PORT}, and it is not a failure "
    "if nothing answers there]",
)
@configured
def status(source: ConfigurationSource, as_json: bool, url: str | None) -> None:
    """Check whether this release can serve.

    Checks the configuration and the database, prints which database that is, and whether a service
    answers.

    Exit codes: 0 no problems; 1 a warning; 2 a failure; 255 the checks could not run.
    """
    # Deferred: `--help` does not need them.
    from berth.cli.fleet.access import service_url
    from berth.cli.status_checks import print_status

    print_status(source, as_json=as_json, url=service_url(os.environ, url, source))
