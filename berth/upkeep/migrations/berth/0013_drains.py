# SPDX-License-Identifier: Apache-2.0
"""Drains: named sets of providers that get nothing new.

The previous release ignores them, and leaves the rows of a provider that it deletes.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_index, create_table

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    """Create the tables and the index."""
    create_table(
        "berth_drains",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("effect", sa.String(16), nullable=False),
        sa.Column("reason", sa.String(255), nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_berth_drains0name"),
    )
    create_table(
        "berth_drained",
        sa.Column("drain_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("provider_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("provider_uuid", sa.String(36), nullable=False),
        sqlite_with_rowid=False,
    )
    create_index("berth_drained_provider_id_idx", "berth_drained", ["provider_id"])
