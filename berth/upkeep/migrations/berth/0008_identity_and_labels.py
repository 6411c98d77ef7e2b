# SPDX-License-Identifier: Apache-2.0
"""The database's identity, for revisions, and the labels of aggregates.

The previous release ignores both.
"""

import secrets

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import create_table

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create the two tables, and give the database a random identity."""
    create_table(
        "berth_meta",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("value", sa.String(255), nullable=False),
        sqlite_with_rowid=False,
    )
    create_table(
        "berth_labels",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("aggregate_uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("labels", sa.Text, nullable=False),
        sa.UniqueConstraint("aggregate_uuid", name="uniq_berth_labels0aggregate_uuid"),
        sa.UniqueConstraint("name", name="uniq_berth_labels0name"),
    )
    meta = sa.table("berth_meta", sa.column("key"), sa.column("value"))
    connection = op.get_bind()
    if connection.scalar(sa.select(meta.c.value).where(meta.c.key == "identity")) is None:
        connection.execute(meta.insert().values(key="identity", value=secrets.token_hex(8)))
