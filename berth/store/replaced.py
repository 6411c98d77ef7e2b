# SPDX-License-Identifier: Apache-2.0
"""What a write replaced, as its own transaction read it: for the audit log.

A caller that wants to know passes an empty object, and reads it after the write has returned. A
unit of work that runs again notes again, so the object always has what the last run read. The
commit succeeds only if that is still so: generations and row counts are in the WHERE of the writes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from berth.model.drain import Drain
from berth.model.ids import ConsumerUUID, ProviderId
from berth.store.claim_reads import ClaimFacts, StoredAllocation


class Holder(NamedTuple):
    """To whom a consumer belonged."""

    project_id: str | None
    user_id: str | None
    #: None if it had none.
    name: str | None


@dataclass(slots=True)
class ReplacedAllocations:
    """The allocations that some consumers had, and whose consumers they were."""

    allocations: list[StoredAllocation] = field(default_factory=list)
    #: Only of consumers that existed.
    holders: dict[ConsumerUUID, Holder] = field(default_factory=dict)

    def note(self, facts: ClaimFacts, consumers: Collection[ConsumerUUID]) -> None:
        """Note what was read of some consumers; the facts may have others too."""
        projects = {number: text for text, number in facts.owners.projects.items()}
        users = {number: text for text, number in facts.owners.users.items()}
        self.allocations = [each for each in facts.allocations if each.consumer in consumers]
        self.holders = {
            uuid: Holder(
                projects.get(stored.project_id),
                users.get(stored.user_id),
                facts.consumer_names.get(stored.name_id),
            )
            for uuid, stored in facts.consumers.items()
            if uuid in consumers
        }

    def clear(self) -> None:
        """Note that the consumers had nothing."""
        self.allocations, self.holders = [], {}

    def add(self, other: ReplacedAllocations) -> None:
        """Note what another commit replaced, of other consumers."""
        self.allocations += other.allocations
        self.holders |= other.holders

    def each(self) -> Iterator[ReplacedAllocations]:
        """The same for each consumer alone."""
        allocations: dict[ConsumerUUID, list[StoredAllocation]] = {
            uuid: [] for uuid in self.holders
        }
        for allocation in self.allocations:
            allocations[allocation.consumer].append(allocation)
        for uuid, holder in self.holders.items():
            yield ReplacedAllocations(allocations[uuid], {uuid: holder})


@dataclass(slots=True)
class ReplacedDrain:
    """A drain, and the providers that it named; None if there was none."""

    drain: Drain | None = None
    providers: Collection[ProviderId] = ()

    def note(self, drain: Drain | None, providers: Collection[ProviderId]) -> None:
        """Note what was read."""
        self.drain, self.providers = drain, providers
