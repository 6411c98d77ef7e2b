# SPDX-License-Identifier: Apache-2.0
"""Names of consumers.

The previous release ignores them, and leaves the name of a consumer that it releases.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_table

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Create the table."""
    create_table(
        "berth_consumer_names",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.UniqueConstraint("project_id", "name", name="uniq_berth_consumer_names0project_id0name"),
        sa.UniqueConstraint("consumer_uuid", name="uniq_berth_consumer_names0consumer_uuid"),
    )
