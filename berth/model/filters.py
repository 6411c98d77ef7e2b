# SPDX-License-Identifier: Apache-2.0
"""Which providers a list shall show."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.model.ids import AggregateUUID, ProviderUUID


@dataclass(frozen=True, slots=True)
class ProviderFilters:
    """All conditions hold at once; the default has none.

    `in_tree`: any provider of the tree that is meant. `member_of` and `required` are sets of
    which one member is enough, and every set must be met; they and their negations look at the
    provider itself, not at its tree. `resources`: amounts that the provider alone could still
    give, by resource class name.
    """

    name: str | None = None
    uuid: ProviderUUID | None = None
    in_tree: ProviderUUID | None = None
    member_of: tuple[frozenset[AggregateUUID], ...] = ()
    not_member_of: frozenset[AggregateUUID] = frozenset()
    resources: Mapping[str, int] = field(default_factory=dict)
    required: tuple[frozenset[str], ...] = ()
    forbidden: frozenset[str] = frozenset()
