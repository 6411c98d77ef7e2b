# SPDX-License-Identifier: Apache-2.0
"""`berth db`: prepare the database, and look after it."""

import click

from berth.cli.deferred import DeferringGroup


@click.group(cls=DeferringGroup)
def db() -> None:
    """Prepare the database, and look after it."""


db.defer(
    ("check", "db_check", "Look for anything in the database that should not be."),
    ("copy", "db_copy", "Copy a database into an empty one, of any engine, and compare the two."),
    (
        "release",
        "db_schema",
        "Remove berth's own tables, so that the database is the original's alone again.",
    ),
    ("upgrade", "db_schema", "Bring the schema to this release; repeatable, and the data stays."),
    (
        "version",
        "db_schema",
        "Print the schema's revisions: the original's, then berth's own; `None` for an empty one.",
    ),
)
