# SPDX-License-Identifier: Apache-2.0
"""Flavors: requests with a name.

The previous release ignores them.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_table

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Create the table."""
    create_table(
        "berth_flavors",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("expose", sa.Boolean, nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_berth_flavors0name"),
    )
