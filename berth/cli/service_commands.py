# SPDX-License-Identifier: Apache-2.0
"""The commands that need the libraries of the service (`berth.extras`): their options and help.

The work of each is the function of the same name in a module that is imported when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from berth.cli.address import DEFAULT_HOST, DEFAULT_PORT
from berth.cli.deferred import work_in
from berth.cli.options import (
    Decorator,
    accessing_with_json,
    argument,
    bind_option,
    configured,
    flag,
    identity_options,
    of_agent,
    option,
    with_options,
)


def configured_work_in(
    module: str, *options: Decorator
) -> Callable[[Callable[[], None]], Callable[..., None]]:
    """Let a module do the work of a command that reads the configuration (see `work_in`), and add
    some options, `--config-file` and `--config-dir`."""
    return lambda command: with_options(configured(work_in(module)(command)), options)


_user_file = option(
    "--file FILE",
    "The user file.  [default: [api]http_basic_auth_user_file]",
    type=click.Path(path_type=Path, dir_okay=False),
)
_password_stdin = flag(
    "--password-stdin",
    "Read the password from the first line of standard input instead of asking for it.",
)


@click.group()
def user() -> None:
    """Manage users (auth_strategy = http_basic)."""


@user.command("add")
@click.argument("name")
@identity_options
@_password_stdin
@configured_work_in("accounts", _user_file)
def add_user() -> None:
    """Add the user NAME; asks for the password.

    A running service accepts the user within a second.
    """


@user.command("list")
@flag("--json", "Print JSON.", parameter="as_json")
@configured_work_in("accounts", _user_file)
def print_users() -> None:
    """Print the users with their projects and roles."""


@user.command("set")
@click.argument("name")
@identity_options
@flag("--no-roles", "Remove all roles.")
@configured_work_in("accounts", _user_file)
def change_user() -> None:
    """Change the project or the host of the user NAME, or replace the user's roles.

    New roles without --host end the confinement to a host.
    """


@user.command("passwd")
@click.argument("name")
@_password_stdin
@configured_work_in("accounts", _user_file)
def change_password() -> None:
    """Change the password of the user NAME; asks for the new one."""


@user.command("remove")
@click.argument("name")
@configured_work_in("accounts", _user_file)
def remove_user() -> None:
    """Remove the user NAME."""


_token_file = option(
    "--file FILE",
    "The token file.  [default: [api]token_file]",
    type=click.Path(path_type=Path, dir_okay=False),
)


@click.group()
def token() -> None:
    """Create, list and revoke tokens (auth_strategy = token)."""


@token.command("create")
@option("--user NAME", "The owner of the token.  [default: the host]")
@identity_options
@option(
    "--expires WHEN",
    "When the token expires: after a number of hours, days or weeks (12h, 90d, 4w), at a date "
    "(2027-01-31 or 2027-01-31T12:00:00Z, UTC), or never.",
    default="90d",
    show_default=True,
)
@configured_work_in("accounts", _token_file)
def create_token() -> None:
    """Create a token and print it.

    The file has only a hash of the token, so berth cannot print it again. A running service accepts
    the token within a second.
    """


@token.command("list")
@flag("--json", "Print JSON.", parameter="as_json")
@configured_work_in("accounts", _token_file)
def print_tokens() -> None:
    """Print the tokens with their owners, roles and expiry dates."""


@token.command("revoke")
@argument("token_id", "ID")
@configured_work_in("accounts", _token_file)
def revoke_token() -> None:
    """Revoke a token.

    The ID is the part of the token between its underscores; `berth token list` prints it. A running
    service refuses the token within a second.
    """


#: The project or user of a caller, unless the command line names one.
_SOMEBODY: Final = "somebody"


@click.group()
def policy() -> None:
    """Show and test the policy."""


@policy.command("list")
@flag("--json", "Print JSON.", parameter="as_json")
@configured_work_in("policy")
def print_rules() -> None:
    """Print every rule and the requests that it guards.

    Also prints each rule's check, and whether a policy file overrides it.
    """


@policy.command("sample")
@flag(
    "--auditor", "Print a file for policy.d instead that gives the role auditor read-only access."
)
@flag(
    "--members",
    "Print a file for policy.d instead that lets the role member place for its own project, "
    "and see and release what it holds.",
)
@work_in("policy")
def print_sample_file() -> None:
    """Print a policy file with every rule and its default, commented out."""


@policy.command("check")
@argument("rules", "[RULE]...")
@click.option("--role", "roles", multiple=True, help="A role of the caller; may be repeated.")
@click.option("--project", default=_SOMEBODY, help="The project of the caller's token.")
@click.option("--user", default=_SOMEBODY, help="The caller's user id.")
@flag("--system", "The caller's token is scoped to the system, not to a project.")
@click.option(
    "--target-project",
    help="The project whose usages the caller requests.  [default: the caller's]",
)
@configured_work_in("policy")
def print_admitted() -> None:
    """Print what a caller with these roles may do.

    Checks all rules, or the RULEs that you name.

    Exit codes: 0 all RULEs that you named allow it; 1 one of them refuses, or a policy file sets an
    unknown rule; 2 there is no such RULE.
    """


@click.group()
def db() -> None:
    """Create, upgrade, check and copy the database."""


@db.command("check")
@flag("--repair", "Repair what berth can repair, and print the rest.")
@flag("--dry-run", "With --repair: print what it would do, and change nothing.")
@configured_work_in("db")
def check_database() -> None:
    """Check the database for inconsistencies.

    Changes nothing without --repair. Services may keep running.

    Exit codes: 0 no inconsistencies, or all repaired; 8 some found, or left.
    """


@db.command("copy")
@option(
    "--from URL",
    "The database to copy. To keep its password out of the process list, set BERTH_COPY_FROM "
    "instead.",
    parameter="from_url",
    required=True,
    envvar="BERTH_COPY_FROM",
)
@option(
    "--to URL",
    "The empty database to copy into. You can set BERTH_COPY_TO instead.",
    parameter="to_url",
    required=True,
    envvar="BERTH_COPY_TO",
)
@flag("--force", "Copy even if something wrote to the source within the last minute.")
@configured_work_in("db")
def copy_to_empty() -> None:
    """Copy a database into an empty one, and compare the two.

    The two may be on different engines. Stop every service that uses either of them first. The
    source does not change. To continue an interrupted copy, run the same command again.
    """


@db.command("new-identity")
@configured_work_in("db")
def renew_identity() -> None:
    """Make all earlier revisions of the database foreign.

    Run it after you restored a backup, and on a copy of the database's files: otherwise a client
    that follows the changes may take the state of one database for that of another. Services may
    keep running. `berth db copy` gives its target a new identity by itself.
    """


@db.command("release")
@flag("--yes", "Do not ask.")
@flag("--force", "Release even if a berth service wrote to the database within the last minute.")
@configured_work_in("db")
def release_database() -> None:
    """Hand the database back to OpenStack Placement.

    Removes berth's own tables and keeps everything that clients wrote. Stop every berth service
    that uses the database first: berth notices only a service that wrote within the last minute.
    """


@db.command("upgrade")
@flag("--force", "Upgrade even if another program wrote to the database within the last minute.")
@configured_work_in("db")
def upgrade_schema() -> None:
    """Create the schema, or upgrade it to this release and keep the data.

    Also converts a database of OpenStack Placement in place; `berth db release` hands it back.
    Stop every service that writes to the database first, or berth refuses to upgrade it. To
    continue an interrupted upgrade, run the same command again.
    """


@db.command("version")
@configured_work_in("db")
def print_version() -> None:
    """Print the revisions of the schema.

    The first is OpenStack Placement's, the second berth's own. Prints `None` if there is no schema.
    """


@click.group()
def config() -> None:
    """Show the configuration."""


@config.command("show")
@flag("--set", "Only options that a file or the environment sets.", parameter="only_set")
@flag("--json", "Print JSON.", parameter="as_json")
@configured_work_in("config")
def print_options() -> None:
    """Print every option with its value and where the value comes from.

    Masks passwords and other secrets. Warns about options in your files that have no effect.
    """


@click.command()
@flag("--json", "Print JSON.", parameter="as_json")
@option(
    "--url URL",
    "The service that must answer.  [env var: BERTH_URL; default: that of client.yaml. If "
    f"nothing names a service, berth tries {DEFAULT_HOST}:{DEFAULT_PORT}, and it is not a failure "
    "if nothing answers there]",
)
@configured_work_in("status")
def status() -> None:
    """Check whether this release can serve.

    Checks the configuration and the database, prints which database that is, and whether a service
    answers.

    Exit codes: 0 no problems; 1 a warning; 2 a failure; 255 the checks could not run.
    """


@click.command("migrate-inventory")
@of_agent
@flag("--dry-run", "Show what would change, and write nothing.")
@option(
    "--undo-file FILE",
    "The file that records each reshape.  [default: undo/reshape-TIME.jsonl in the agent's "
    "state directory]",
    type=click.Path(path_type=Path),
)
@option(
    "--undo FILE",
    "Undo the reshapes that are recorded in this file.",
    parameter="to_undo",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@accessing_with_json("Print the result as JSON.")
@work_in("migrate_inventory")
def migrate_inventory() -> None:
    """Reshape this host's trees while every service is stopped.

    For each node of this host, inventory and allocations move as they do when the agent starts, but
    directly in the database. A node is migrated completely or not at all, a node that fails does
    not hold up the others, and a second run finds nothing to do.

    Exit codes: 0 done; 13 a dry run found changes pending; 12 a host's tree conflicts with existing
    allocations; 10 another program writes to the database.
    """


@click.command()
@configured
@bind_option
@option(
    "--workers N",
    "Number of worker processes. They share the address and the database.",
    default=1,
    show_default=True,
    type=click.IntRange(min=1),
)
@flag(
    "--insecure-noauth",
    "Allow auth_strategy = noauth2 on an address that other machines can reach. Anyone who "
    "can connect may then read and change everything.",
)
@option(
    "--tls-cert FILE",
    "Serve HTTPS with this certificate chain, in PEM.  [default: [berth]tls_cert]",
    type=click.Path(path_type=Path),
)
@option(
    "--tls-key FILE",
    "The certificate's private key, in PEM.  [default: [berth]tls_key]",
    type=click.Path(path_type=Path),
)
@work_in("serve")
def serve() -> None:
    """Serve the placement API.

    Without any configuration, berth stores its data in an SQLite file in your home directory,
    listens on 127.0.0.1 only, and does not authenticate clients.
    """
