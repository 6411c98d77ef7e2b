# SPDX-License-Identifier: Apache-2.0
"""berth's tables: the usages, and the writers' clock with its journal.

The usages are computed afterwards: see 0003.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_table

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the three tables."""
    create_table(
        "berth_usages",
        sa.Column("resource_provider_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("resource_class_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    create_table(
        "berth_writer",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("trimmed_seq", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.DateTime, nullable=False),
    )
    create_table(
        "berth_journal",
        sa.Column("writer_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("provider_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sqlite_with_rowid=False,
    )
