# SPDX-License-Identifier: Apache-2.0
"""`berth migrate-inventory`: does what an agent does when it starts, with every service stopped."""

import os
from pathlib import Path

import click

from berth.cli.agent_options import AgentSource, of_agent
from berth.cli.fleet.access import Access, accessing_with_json


@click.command("migrate-inventory")
@of_agent
@click.option("--dry-run", is_flag=True, help="Show what would change, and write nothing.")
@click.option(
    "--undo-file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file that records each reshape.  [default: undo/reshape-TIME.jsonl in the agent's "
    "state directory]",
)
@click.option(
    "--undo",
    "to_undo",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Undo the reshapes that are recorded in this file.",
)
@accessing_with_json("Print the result as JSON.")
def migrate_inventory(
    access: Access,
    agent_source: AgentSource,
    dry_run: bool,
    undo_file: Path | None,
    to_undo: Path | None,
) -> None:
    """Reshape this host's trees while every service is stopped.

    For each node of this host, inventory and allocations move as they do when the agent starts, but
    directly in the database. A node is migrated completely or not at all, a node that fails does
    not
    hold up the others, and a second run finds nothing to do.

    Exit codes: 0 done; 13 a dry run found changes pending; 12 a host's tree conflicts with existing
    allocations; 10 another program writes to the database.
    """
    if to_undo is None and access.is_of_service(os.environ):
        raise click.UsageError(
            "a service is named (--url, BERTH_URL or the like), where the agent itself migrates; "
            "name the database with --config-file, or use --undo"
        )
    # Imported here, so that `--help` is fast.
    from berth.cli.inventory_migration import migrate_or_undo

    migrate_or_undo(
        access,
        agent_source,
        undo_file=undo_file,
        to_undo=to_undo,
        dry_run=dry_run,
    )
