# SPDX-License-Identifier: Apache-2.0
"""What `POST /berth/v1/place` wrote for each consumer.

The previous release ignores it.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_table

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Create the table."""
    create_table(
        "berth_placements",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("allocations_digest", sa.String(64), nullable=False),
        sa.Column("host_uuid", sa.String(36), nullable=False),
        sa.Column("mappings", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.UniqueConstraint("consumer_uuid", name="uniq_berth_placements0consumer_uuid"),
    )
