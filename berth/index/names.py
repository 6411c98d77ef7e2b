# SPDX-License-Identifier: Apache-2.0
"""What the names of a fleet stand for at one moment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from berth.model.ids import AggregateId, AggregateUUID, ClassId, TraitId
from berth.model.named import NO_RECORDS, NamedRecords


class Names(Struct, frozen=True, eq=False):
    """What names and ids stand for at present: resource classes and traits, both ways, aggregates,
    and named records.

    There is a new object after every change, so that the object itself is the version of the names
    in the keys of `berth.index.memory.Memory`.

    Attributes:
        trait_times: when each trait was created or changed: seconds since 1970, or `NO_TIME`.
        aggregate_ids: uuid -> id of every aggregate that some provider was ever in.
        records: flavors, drains and labels.
        labels: (key, value) -> the uuids of the aggregates with that label.
        aggregate_sets_count: how many sets of aggregates were registered; no provider of a snapshot
            with these names is in a later one.
    """

    class_ids: Mapping[str, ClassId] = field(default_factory=dict)
    class_names: Mapping[ClassId, str] = field(default_factory=dict)
    trait_ids: Mapping[str, TraitId] = field(default_factory=dict)
    trait_names: Mapping[TraitId, str] = field(default_factory=dict)
    trait_times: Mapping[TraitId, int] = field(default_factory=dict)
    aggregate_ids: Mapping[AggregateUUID, AggregateId] = field(default_factory=dict)
    aggregate_sets_count: int = 0
    records: NamedRecords = NO_RECORDS
    labels: Mapping[tuple[str, str], frozenset[AggregateUUID]] = field(default_factory=dict)

    def redefined(
        self,
        class_ids: Mapping[str, ClassId],
        trait_ids: Mapping[str, TraitId],
        trait_times: Mapping[TraitId, int],
    ) -> Names:
        """The same with other classes and traits."""
        return replace(
            self,
            class_ids=class_ids,
            class_names={number: name for name, number in class_ids.items()},
            trait_ids=trait_ids,
            trait_names={number: name for name, number in trait_ids.items()},
            trait_times=trait_times,
        )

    def with_records(self, records: NamedRecords) -> Names:
        """The same with other named records."""
        return replace(self, records=records, labels=_aggregates_with(records.labels_of))


def _aggregates_with(
    labels_of: Mapping[AggregateUUID, Mapping[str, str]],
) -> dict[tuple[str, str], frozenset[AggregateUUID]]:
    """The aggregates that have each label."""
    having: defaultdict[tuple[str, str], set[AggregateUUID]] = defaultdict(set)
    for aggregate, its_labels in labels_of.items():
        for label in its_labels.items():
            having[label].add(aggregate)
    return {label: frozenset(aggregates) for label, aggregates in having.items()}
