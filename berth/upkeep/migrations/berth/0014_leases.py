# SPDX-License-Identifier: Apache-2.0
"""Leases of consumers.

The previous release ignores them; what it writes of a consumer ends its lease, because it
increments the consumer's generation.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_index, create_table

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    """Create the table."""
    create_table(
        "berth_leases",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("consumer_id", sa.Integer, nullable=False),
        sa.Column("consumer_created_at", sa.DateTime),
        sa.Column("consumer_generation", sa.Integer, nullable=False),
        sa.Column("expires_at", sa.DateTime, nullable=False),
        sa.Column("renewals", sa.Integer, nullable=False),
        sa.UniqueConstraint("consumer_uuid", name="uniq_berth_leases0consumer_uuid"),
    )
    create_index("berth_leases_expires_at_idx", "berth_leases", ["expires_at"])
