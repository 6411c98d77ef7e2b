# SPDX-License-Identifier: Apache-2.0
"""`berth db`: create, upgrade, check and copy the database."""

import click

from berth.cli.options import ConfigurationSource, configured


@click.group()
def db() -> None:
    """Create, upgrade, check and copy the database."""


@db.command()
@click.option("--repair", is_flag=True, help="Repair what berth can repair, and print the rest.")
@click.option(
    "--dry-run", is_flag=True, help="With --repair: print what it would do, and change nothing."
)
@configured
def check(source: ConfigurationSource, repair: bool, dry_run: bool) -> None:
    """Check the database for inconsistencies.

    Changes nothing without --repair. Services may keep running.

    Exit codes: 0 no inconsistencies, or all repaired; 8 some found, or left.
    """
    if dry_run and not repair:
        raise click.UsageError("--dry-run needs --repair: it prints what --repair would do")
    # Deferred: `--help` does not need it.
    from berth.cli.db_check import check_database

    check_database(source, repair=repair, dry_run=dry_run)


@db.command()
@click.option(
    "--from",
    "source_url",
    metavar="URL",
    required=True,
    envvar="BERTH_COPY_FROM",
    help="The database to copy. To keep its password out of the process list, set BERTH_COPY_FROM "
    "instead.",
)
@click.option(
    "--to",
    "target_url",
    metavar="URL",
    required=True,
    envvar="BERTH_COPY_TO",
    help="The empty database to copy into. You can set BERTH_COPY_TO instead.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Copy even if something wrote to the source within the last minute.",
)
@configured
def copy(configuration: ConfigurationSource, source_url: str, target_url: str, force: bool) -> None:
    """Copy a database into an empty one, and compare the two.

    The two may be on different engines. Stop every service that uses either of them first. The
    source does not change. To continue an interrupted copy, run the same command again.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.db_copy import copy_to_empty

    copy_to_empty(configuration, source_url, target_url, force=force)


@db.command("new-identity")
@configured
def new_identity(source: ConfigurationSource) -> None:
    """Make all earlier revisions of the database foreign.

    Run it after you restored a backup, and on a copy of the database's files: otherwise a client
    that follows the changes may take the state of one database for that of another. Services may
    keep running. `berth db copy` gives its target a new identity by itself.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.db_schema import renew_identity

    renew_identity(source)


@db.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--force",
    is_flag=True,
    help="Release even if a berth service wrote to the database within the last minute.",
)
@configured
def release(source: ConfigurationSource, yes: bool, force: bool) -> None:
    """Hand the database back to OpenStack Placement.

    Removes berth's own tables and keeps everything that clients wrote. Stop every berth service
    that uses the database first: berth notices only a service that wrote within the last minute.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.db_schema import release_database

    release_database(source, yes=yes, force=force)


@db.command()
@click.option(
    "--force",
    is_flag=True,
    help="Upgrade even if another program wrote to the database within the last minute.",
)
@configured
def upgrade(source: ConfigurationSource, force: bool) -> None:
    """Create the schema, or upgrade it to this release and keep the data.

    Also converts a database of OpenStack Placement in place; `berth db release` hands it back.
    Stop every service that writes to the database first, or berth refuses to upgrade it. To
    continue an interrupted upgrade, run the same command again.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.db_schema import upgrade_schema

    upgrade_schema(source, force=force)


@db.command()
@configured
def version(source: ConfigurationSource) -> None:
    """Print the revisions of the schema.

    The first is OpenStack Placement's, the second berth's own. Prints `None` if there is no schema.
    """
    # Deferred: `--help` does not need it.
    from berth.cli.db_schema import print_version

    print_version(source)
