# SPDX-License-Identifier: Apache-2.0
"""berth's tables, and the identity of the database.

The usages and the counters of what projects use are filled in afterwards: see 0002.
"""

import secrets

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import create_index, create_table

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables, and give the database a random identity."""
    create_table(
        "berth_usages",
        sa.Column("resource_provider_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("resource_class_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("used", sa.BigInteger, nullable=False),
        sa.Column("generation", sa.Integer),
        sqlite_with_rowid=False,
    )
    key = ("project_id", "user_id", "consumer_type_id", "first_class", "writer_id")
    create_table(
        "berth_project_usages",
        *(sa.Column(name, sa.Integer, primary_key=True, autoincrement=False) for name in key),
        *(sa.Column(f"used_{slot}", sa.BigInteger, nullable=False) for slot in range(4)),
        sqlite_with_rowid=False,
    )
    create_index("berth_project_usages_writer_id_idx", "berth_project_usages", ["writer_id"])
    _clock()
    _meta()
    _named_records()
    _consumers()


def _clock() -> None:
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
        sa.Column("usage_only", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("gone_uuid", sa.String(36)),
        sqlite_with_rowid=False,
    )


def _meta() -> None:
    create_table(
        "berth_meta",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("value", sa.String(255), nullable=False),
        sqlite_with_rowid=False,
    )
    meta = sa.table("berth_meta", sa.column("key"), sa.column("value"))
    connection = op.get_bind()
    if connection.scalar(sa.select(meta.c.value).where(meta.c.key == "identity")) is None:
        connection.execute(meta.insert().values(key="identity", value=secrets.token_hex(8)))


def _named_records() -> None:
    create_table(
        "berth_labels",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("aggregate_uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(255)),
        sa.Column("labels", sa.Text, nullable=False),
        sa.UniqueConstraint("aggregate_uuid", name="uniq_berth_labels0aggregate_uuid"),
        sa.UniqueConstraint("name", name="uniq_berth_labels0name"),
    )
    create_table(
        "berth_flavors",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("request", sa.Text, nullable=False),
        sa.Column("expose", sa.Boolean, nullable=False),
        sa.Column("description", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_berth_flavors0name"),
    )
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


def _consumers() -> None:
    create_table(
        "berth_placements",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("allocations_digest", sa.String(64), nullable=False),
        sa.Column("host_uuid", sa.String(36), nullable=False),
        sa.Column("mappings", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime, nullable=False),
        sa.Column("request", sa.Text),
        sa.UniqueConstraint("consumer_uuid", name="uniq_berth_placements0consumer_uuid"),
    )
    create_table(
        "berth_consumer_names",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.Integer, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("consumer_uuid", sa.String(36), nullable=False),
        sa.UniqueConstraint("project_id", "name", name="uniq_berth_consumer_names0project_id0name"),
        sa.UniqueConstraint("consumer_uuid", name="uniq_berth_consumer_names0consumer_uuid"),
    )
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
