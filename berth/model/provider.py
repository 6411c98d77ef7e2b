# SPDX-License-Identifier: Apache-2.0
"""A resource provider: its identity, its place in a tree, its generation; and filters of a list."""

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct, field

from berth.model.ids import AggregateUUID, Generation, ProviderId, ProviderUUID


class Provider(Struct, frozen=True):
    """A stored provider. A root has no parent and is its own root. Times are naive UTC."""

    id: ProviderId
    uuid: ProviderUUID
    name: str
    generation: Generation
    parent_uuid: ProviderUUID | None
    root_uuid: ProviderUUID
    created_at: datetime | None
    updated_at: datetime | None

    @property
    def last_modified(self) -> datetime | None:
        """When it was last changed, or created; None in very old data."""
        return self.updated_at or self.created_at


class ProviderFilters(Struct, frozen=True):
    """A provider must match every filter; by default there are none.

    `in_tree`: any provider of the tree. `member_of` and `required`: the provider must match every
    set, and one member of a set is enough. These two and their negations apply to the provider
    itself, not to its tree. `resources`: amounts that the provider alone has free, by resource
    class name.
    """

    name: str | None = None
    uuid: ProviderUUID | None = None
    in_tree: ProviderUUID | None = None
    member_of: tuple[frozenset[AggregateUUID], ...] = ()
    not_member_of: frozenset[AggregateUUID] = frozenset()
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
