# SPDX-License-Identifier: Apache-2.0
"""`berth db`: prepare the database, and look after it."""

import click

from berth.cli.options import ConfigurationSource, configured


@click.group()
def db() -> None:
    """Create, upgrade, check and copy the database."""


@db.command()
@click.option("--repair", is_flag=True, help="Repair what can be repaired, and print what is left.")
@click.option(
    "--dry-run", is_flag=True, help="With --repair: print what it would do, and change nothing."
)
@configured
def check(source: ConfigurationSource, repair: bool, dry_run: bool) -> None:
    """Check the database for inconsistencies.

    Changes nothing without --repair. Services may keep running.
    """
    if dry_run and not repair:
        raise click.UsageError("--dry-run says what --repair would do: give both")
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_check import check_database

    check_database(source, repair=repair, dry_run=dry_run)


@db.command()
@click.option(
    "--from",
    "source_url",
    metavar="URL",
    required=True,
    envvar="BERTH_COPY_FROM",
    help="The database to copy. BERTH_COPY_FROM may hold the URL instead, which keeps the password "
    "out of the list of processes.",
)
@click.option(
    "--to",
    "target_url",
    metavar="URL",
    required=True,
    envvar="BERTH_COPY_TO",
    help="The empty database to copy into, or set BERTH_COPY_TO.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Copy even if something wrote to the source within the last minute.",
)
@configured
def copy(configuration: ConfigurationSource, source_url: str, target_url: str, force: bool) -> None:
    """Copy a database into an empty one, of any engine, and compare the two.

    Stop every service that uses either of them first; the source is not changed. To continue a
    copy that was interrupted, run the same command again.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_copy import copy_to_empty

    copy_to_empty(configuration, source_url, target_url, force=force)


@db.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--force",
    is_flag=True,
    help="Proceed even if a berth wrote to the database within the last minute.",
)
@configured
def release(source: ConfigurationSource, yes: bool, force: bool) -> None:
    """Remove berth's own tables, so that OpenStack Placement can use the database again.

    Keeps everything that was written through berth. Stop every berth that uses the database first.
    """
    # Here, so that `--help` need not wait for it.
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
    """Upgrade the schema to this release; keeps the data, and can be repeated.

    Takes over a database of OpenStack Placement in place; `berth db release` hands it back. Stop
    every service that writes to it first: the upgrade is refused while one does. To continue an
    upgrade that was interrupted, run the same command again.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_schema import upgrade_schema

    upgrade_schema(source, force=force)


@db.command()
@configured
def version(source: ConfigurationSource) -> None:
    """Print the schema's revisions, OpenStack Placement's and then berth's own; `None` if there is
    no schema."""
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_schema import print_version

    print_version(source)
