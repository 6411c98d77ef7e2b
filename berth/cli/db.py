# SPDX-License-Identifier: Apache-2.0
"""`berth db`: prepare the database, and look after it."""

import click

from berth.cli.options import ConfigurationSource, configured


@click.group()
def db() -> None:
    """Prepare the database, and look after it."""


@db.command()
@click.option("--repair", is_flag=True, help="Put right what can be, and say what is left.")
@click.option("--dry-run", is_flag=True, help="With --repair: only say what it would do.")
@configured
def check(source: ConfigurationSource, repair: bool, dry_run: bool) -> None:
    """Look for anything in the database that should not be.

    Changes nothing without --repair. Services may go on meanwhile.
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
    help="The database to copy; or set BERTH_COPY_FROM, which others do not see as they see a "
    "command line.",
)
@click.option(
    "--to",
    "target_url",
    metavar="URL",
    required=True,
    envvar="BERTH_COPY_TO",
    help="The empty database to copy into; or set BERTH_COPY_TO.",
)
@click.option(
    "--force",
    is_flag=True,
    help="Copy although somebody wrote to the source within the last minute.",
)
@configured
def copy(configuration: ConfigurationSource, source_url: str, target_url: str, force: bool) -> None:
    """Copy a database into an empty one, of any engine, and compare the two.

    Nobody may use either of them meanwhile; the source is not changed. A copy that was
    interrupted goes on where it was when the same command is run again.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_copy import copy_to_empty

    copy_to_empty(configuration, source_url, target_url, force=force)


@db.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--force", is_flag=True, help="Also when a berth wrote to the database within the last minute."
)
@configured
def release(source: ConfigurationSource, yes: bool, force: bool) -> None:
    """Remove berth's own tables, so that the database is the original's alone again.

    Everything that was written through berth stays. Stop every berth that serves it first.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_schema import release_database

    release_database(source, yes=yes, force=force)


@db.command()
@configured
def upgrade(source: ConfigurationSource) -> None:
    """Bring the schema to this release; repeatable, and the data stays.

    A database of the original service is taken over in place, and can be handed back. Stop every
    service that writes to it first. An upgrade that was broken off goes on where it was.
    """
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_schema import upgrade_schema

    upgrade_schema(source)


@db.command()
@configured
def version(source: ConfigurationSource) -> None:
    """Print the schema's revisions: the original's, then berth's own; `None` for an empty one."""
    # Here, so that `--help` need not wait for it.
    from berth.cli.db_schema import print_version

    print_version(source)
