# SPDX-License-Identifier: Apache-2.0
"""All tables but consumer_types, as the first separate release of OpenStack Placement had them."""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_index, create_table

revision = "b4ed3a175331"
down_revision = None


def upgrade() -> None:
    """Create the tables and their indexes."""
    _create_providers()
    _create_stock()
    _create_consumers()
    _create_names()
    _create_associations()


def _times() -> tuple[sa.Column[object], sa.Column[object]]:
    return sa.Column("created_at", sa.DateTime), sa.Column("updated_at", sa.DateTime)


def _create_providers() -> None:
    create_table(
        "resource_providers",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("name", sa.String(200)),
        sa.Column("generation", sa.Integer),
        sa.Column("root_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id")),
        sa.Column("parent_provider_id", sa.Integer, sa.ForeignKey("resource_providers.id")),
        sa.UniqueConstraint("uuid", name="uniq_resource_providers0uuid"),
        sa.UniqueConstraint("name", name="uniq_resource_providers0name"),
    )
    for name, column in (
        ("resource_providers_uuid_idx", "uuid"),
        ("resource_providers_name_idx", "name"),
        ("resource_providers_root_provider_id_idx", "root_provider_id"),
        ("resource_providers_parent_provider_id_idx", "parent_provider_id"),
    ):
        create_index(name, "resource_providers", [column])


def _create_stock() -> None:
    create_table(
        "inventories",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("resource_provider_id", sa.Integer, nullable=False),
        sa.Column("resource_class_id", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
        sa.Column("reserved", sa.Integer, nullable=False),
        sa.Column("min_unit", sa.Integer, nullable=False),
        sa.Column("max_unit", sa.Integer, nullable=False),
        sa.Column("step_size", sa.Integer, nullable=False),
        sa.Column("allocation_ratio", sa.Float, nullable=False),
        sa.UniqueConstraint(
            "resource_provider_id",
            "resource_class_id",
            name="uniq_inventories0resource_provider_resource_class",
        ),
    )
    create_index("inventories_resource_provider_id_idx", "inventories", ["resource_provider_id"])
    create_index("inventories_resource_class_id_idx", "inventories", ["resource_class_id"])
    create_index(
        "inventories_resource_provider_resource_class_idx",
        "inventories",
        ["resource_provider_id", "resource_class_id"],
    )
    create_table(
        "allocations",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("resource_provider_id", sa.Integer, nullable=False),
        sa.Column("consumer_id", sa.String(36), nullable=False),
        sa.Column("resource_class_id", sa.Integer, nullable=False),
        sa.Column("used", sa.Integer, nullable=False),
    )
    create_index(
        "allocations_resource_provider_class_used_idx",
        "allocations",
        ["resource_provider_id", "resource_class_id", "used"],
    )
    create_index("allocations_resource_class_id_idx", "allocations", ["resource_class_id"])
    create_index("allocations_consumer_id_idx", "allocations", ["consumer_id"])


def _create_consumers() -> None:
    create_table(
        "consumers",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("project_id", sa.Integer, nullable=False),
        sa.Column("user_id", sa.Integer, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False, server_default=sa.text("0")),
        sa.UniqueConstraint("uuid", name="uniq_consumers0uuid"),
    )
    create_index("consumers_project_id_uuid_idx", "consumers", ["project_id", "uuid"])
    create_index(
        "consumers_project_id_user_id_uuid_idx", "consumers", ["project_id", "user_id", "uuid"]
    )
    for table in ("projects", "users"):
        create_table(
            table,
            *_times(),
            sa.Column("id", sa.Integer, primary_key=True),
            sa.Column("external_id", sa.String(255), nullable=False),
            sa.UniqueConstraint("external_id", name=f"uniq_{table}0external_id"),
        )


def _create_names() -> None:
    create_table(
        "resource_classes",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_resource_classes0name"),
    )
    create_table(
        "traits",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.UniqueConstraint("name", name="uniq_traits0name"),
    )
    create_table(
        "placement_aggregates",
        *_times(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("uuid", sa.String(36)),
        sa.UniqueConstraint("uuid", name="uniq_placement_aggregates0uuid"),
    )
    create_index("ix_placement_aggregates_uuid", "placement_aggregates", ["uuid"])


def _create_associations() -> None:
    create_table(
        "resource_provider_traits",
        *_times(),
        sa.Column("trait_id", sa.Integer, sa.ForeignKey("traits.id"), primary_key=True),
        sa.Column(
            "resource_provider_id",
            sa.Integer,
            sa.ForeignKey("resource_providers.id"),
            primary_key=True,
        ),
    )
    create_index(
        "resource_provider_traits_resource_provider_trait_idx",
        "resource_provider_traits",
        ["resource_provider_id", "trait_id"],
    )
    create_table(
        "resource_provider_aggregates",
        *_times(),
        sa.Column("resource_provider_id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("aggregate_id", sa.Integer, primary_key=True, autoincrement=False),
    )
    create_index(
        "resource_provider_aggregates_aggregate_id_idx",
        "resource_provider_aggregates",
        ["aggregate_id"],
    )
