# SPDX-License-Identifier: Apache-2.0
"""A resource provider: its identity, its place in a tree, its generation."""

from dataclasses import dataclass
from datetime import datetime

from berth.model.ids import Generation, ProviderId, ProviderUUID


@dataclass(frozen=True, slots=True)
class Provider:
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
