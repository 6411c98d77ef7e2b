# SPDX-License-Identifier: Apache-2.0
"""A consumer may have a type."""

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import create_index, create_table, has_column, has_foreign_key

revision = "422ece571366"
down_revision = "b5c396305c25"

_REFERENCE = "consumers_consumer_type_id_fkey"


def upgrade() -> None:
    """Add the table of types, and the reference to it."""
    create_table(
        "consumer_types",
        sa.Column("created_at", sa.DateTime),
        sa.Column("updated_at", sa.DateTime),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_consumer_types0name"),
    )
    _add_reference()
    create_index("consumers_consumer_type_id_idx", "consumers", ["consumer_type_id"])


def _add_reference() -> None:
    reference = sa.ForeignKey("consumer_types.id", name=_REFERENCE)
    is_inline = not op.get_bind().dialect.supports_alter
    if not has_column("consumers", "consumer_type_id"):
        # SQLite cannot add the reference afterwards, and MySQL ignores it within a column.
        column = sa.Column("consumer_type_id", sa.Integer, *([reference] if is_inline else []))
        op.add_column("consumers", column, inline_references=is_inline)
    if not is_inline and not has_foreign_key("consumers", _REFERENCE):
        op.create_foreign_key(
            _REFERENCE, "consumers", "consumer_types", ["consumer_type_id"], ["id"]
        )
