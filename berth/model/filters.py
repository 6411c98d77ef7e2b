# SPDX-License-Identifier: Apache-2.0
"""Filters of a list of providers."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from berth.model.ids import AggregateUUID, ProviderUUID


@dataclass(frozen=True, slots=True)
class ProviderFilters:
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
