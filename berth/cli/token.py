# SPDX-License-Identifier: Apache-2.0
"""`berth token`: manage the tokens of `[api]auth_strategy = token`."""

from pathlib import Path

import click

from berth.cli.identities import Granted, identity_options
from berth.cli.options import ConfigurationSource, configured

_file = click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The token file.  [default: [api]token_file]",
)


@click.group()
def token() -> None:
    """Create, list and revoke tokens (auth_strategy = token)."""


@token.command()
@click.option("--user", metavar="NAME", help="The owner of the token.  [default: the host]")
@identity_options
@click.option(
    "--expires",
    default="90d",
    show_default=True,
    metavar="WHEN",
    help="When the token expires: after a number of hours, days or weeks (12h, 90d, 4w), at a date "
    "(2027-01-31 or 2027-01-31T12:00:00Z, UTC), or never.",
)
@_file
@configured
def create(
    source: ConfigurationSource,
    user: str | None,
    granted: Granted,
    expires: str,
    file: Path | None,
) -> None:
    """Create a token and print it.

    The file has only a hash of the token, so berth cannot print it again. A running service accepts
    the token within a second.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.token_file_edits import create_token

    owner = granted.host if user is None else user
    if owner is None:
        raise click.UsageError("Missing option '--user'.")
    create_token(source, user=owner, granted=granted, expires=expires, file=file)


@token.command(name="list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_file
@configured
def list_tokens(source: ConfigurationSource, as_json: bool, file: Path | None) -> None:
    """Print the tokens with their owners, roles and expiry dates."""
    # Deferred: `--help` does not need it.
    from berth.cli.token_file_edits import print_tokens

    print_tokens(source, as_json=as_json, file=file)


@token.command()
@click.argument("token_id", metavar="ID")
@_file
@configured
def revoke(source: ConfigurationSource, token_id: str, file: Path | None) -> None:
    """Revoke a token.

    The ID is the part of the token between its underscores; `berth token list` prints it. A running
    service refuses the token within a second.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.token_file_edits import revoke_token

    revoke_token(source, token_id, file=file)
