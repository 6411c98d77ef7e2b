# SPDX-License-Identifier: Apache-2.0
"""The record of what a request writes: what it asks for, and what was there before.

The functions of the store keep it, if the database that they are given has one
(`Database.recording`), and the audit log is made from it. What was there is as the write's own
transaction read it. A unit of work that runs again notes again, so the record always has what the
last run read. The commit succeeds only if that is still so: generations and row counts are in the
WHERE of the writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from berth.model.consumer import ConsumerWrite
from berth.model.ids import ClassId, ConsumerUUID, ProviderId, ProviderUUID
from berth.model.inventory import Inventory
from berth.model.named import Drain
from berth.model.provider_trees import Edit

#: A provider and a resource class.
_Key = tuple[ProviderId, ClassId]

#: How much a consumer has of a resource class of a provider.
_Amount = tuple[ConsumerUUID, _Key, int]


class Holder(NamedTuple):
    """To whom a consumer belonged."""

    project_id: str | None
    user_id: str | None
    #: None if it had none.
    name: str | None


class Holdings(Struct):
    """The allocations that some consumers had, and whose consumers they were."""

    allocations: list[_Amount] = field(default_factory=list)
    #: Only of consumers that existed.
    holders: dict[ConsumerUUID, Holder] = field(default_factory=dict)

    def each(self) -> Iterator[Holdings]:
        """The same for each consumer alone."""
        by_consumer: dict[ConsumerUUID, list[_Amount]] = {}
        for amount in self.allocations:
            by_consumer.setdefault(amount[0], []).append(amount)
        for uuid, holder in self.holders.items():
            yield Holdings(by_consumer.get(uuid, []), {uuid: holder})


class InventoryWrite(NamedTuple):
    """The inventories that a provider is to have.

    Attributes:
        inventories: by resource class name; None removes one.
        is_whole: whether the provider's other inventories are removed.
    """

    provider: ProviderUUID
    inventories: Mapping[str, Inventory | None]
    is_whole: bool


class NewProvider(NamedTuple):
    """A provider that is to be created; without a parent, it is a root."""

    name: str
    parent: ProviderUUID | None


class DrainBefore(NamedTuple):
    """A drain with the providers that it named; None if there was none."""

    drain: Drain | None
    providers: Collection[ProviderId]


class WriteRecord(Struct):
    """What one request writes."""

    #: What consumers are to have, and what they had.
    claims: Sequence[ConsumerWrite] = ()
    former: Holdings = field(default_factory=Holdings)
    #: What providers are to have, and what they had.
    inventory_writes: Sequence[InventoryWrite] = ()
    inventories: Mapping[_Key, Inventory] = field(default_factory=dict)
    #: Other state that is replaced as a whole: its name, and what it is to be.
    wanted: dict[str, object] = field(default_factory=dict)
    #: The drain as it was before this request; None if the request writes no drain.
    drain: DrainBefore | None = None
    #: The other providers that the request names. Each that it creates has the name and the parent
    #: that it is to get; one that exists has None.
    providers: dict[ProviderUUID, NewProvider | None] = field(default_factory=dict)
    #: What was done to a tree.
    edit: Edit | None = None
    #: Whether one of several commits has taken place, or may have.
    is_begun: bool = False

    def release_more(self, former: Holdings) -> None:
        """Note what one of several commits has released, or may have released."""
        self.former.allocations += former.allocations
        self.former.holders |= former.holders
        self.is_begun = True

    def taken(self) -> Holdings:
        """What has been released since the last call."""
        former, self.former = self.former, Holdings()
        return former
