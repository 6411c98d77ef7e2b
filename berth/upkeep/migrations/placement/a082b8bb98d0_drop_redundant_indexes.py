# SPDX-License-Identifier: Apache-2.0
"""Drop the indexes that a unique key makes redundant."""

from berth.upkeep.migrations.steps import drop_index

revision = "a082b8bb98d0"
down_revision = "422ece571366"

_REDUNDANT = (
    ("inventories", "inventories_resource_provider_id_idx"),
    ("inventories", "inventories_resource_provider_resource_class_idx"),
    ("placement_aggregates", "ix_placement_aggregates_uuid"),
    ("resource_providers", "resource_providers_name_idx"),
    ("resource_providers", "resource_providers_uuid_idx"),
)


def upgrade() -> None:
    """Drop them."""
    for table, index in _REDUNDANT:
        drop_index(index, table)
