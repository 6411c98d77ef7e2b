# SPDX-License-Identifier: Apache-2.0
"""A consumer may have a type."""

import sqlalchemy as sa
from alembic import op

revision = "422ece571366"
down_revision = "b5c396305c25"


def upgrade() -> None:
    """Add the table of types, and the reference to it."""
    op.create_table(
        "consumer_types",
        sa.Column("created_at", sa.DateTime),
        sa.Column("updated_at", sa.DateTime),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    op.add_column(
        "consumers",
        sa.Column(
            "consumer_type_id",
            sa.Integer,
            sa.ForeignKey("consumer_types.id", name="consumers_consumer_type_id_fkey"),
        ),
        inline_references=True,  # SQLite cannot add the reference afterwards
    )
    op.create_index("consumers_consumer_type_id_idx", "consumers", ["consumer_type_id"])
