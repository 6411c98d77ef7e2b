# SPDX-License-Identifier: Apache-2.0
"""Named records: what clients keep under a name, and every index keeps in memory.

Flavors are requests (spec/beyond.md 4.5), drains sets of providers that get nothing new (7.1), and
labels belong to aggregates (7.2). `berth.store.named` stores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final, NamedTuple, NewType

from msgspec import Struct

from berth.model.ids import AggregateUUID

FlavorName = NewType("FlavorName", str)


class Flavor(Struct, frozen=True):
    """A stored request.

    Attributes:
        request: its JSON text. Only who asks with it decodes it, so that damage to one flavor
            harms nothing else.
        expose: whether metrics show its capacity.
        description: for people.
    """

    request: str
    expose: bool = True
    description: str = ""


DrainName = NewType("DrainName", str)
DrainId = NewType("DrainId", int)


class Effect(Enum):
    """What a drain does to its providers."""

    #: They get nothing new.
    EXCLUDE = "exclude"
    #: Nothing: the drain is only announced.
    NONE = "none"


class Drain(Struct, frozen=True):
    """A drain without its providers.

    Attributes:
        generation: counts its changes.
        reason: for people.
        created_at: naive UTC.
        created_by: the user id of whoever created it; "" if unknown.
    """

    id: DrainId
    generation: int
    effect: Effect
    reason: str
    created_at: datetime
    created_by: str

    @property
    def excludes(self) -> bool:
        """Whether its providers get nothing new."""
        return self.effect is Effect.EXCLUDE


class NamedRecords(NamedTuple):
    """All named records, by kind and name. The index needs no more of a new kind than a member.

    Attributes:
        labels_of: aggregate -> its labels; only those that have some.
    """

    labels_of: Mapping[AggregateUUID, Mapping[str, str]] = MappingProxyType({})
    flavors: Mapping[FlavorName, Flavor] = MappingProxyType({})
    drains: Mapping[DrainName, Drain] = MappingProxyType({})


NO_RECORDS: Final = NamedRecords()
