# SPDX-License-Identifier: Apache-2.0
"""Hosts grouped by a label key: for `max_per` and `within` of a placement.

A host has the labels of all aggregates that its root is directly in. A host without the label is
a group of its own, and so is every host for the key `host`.

Source: spec/beyond.md 5.2 and 7.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from berth.candidates.masks import Rows
from berth.index.aggregate_sets import Mask
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateId

#: The key that stands for the hosts themselves.
HOST: Final = "host"

_NO_HOST: Final = -1

#: The value of a label, or the key of a host that is a group of its own.
Group = str | int


class HostGroups:
    """The hosts of one snapshot by one key."""

    def __init__(self, snapshot: Snapshot, key: str) -> None:
        self._snapshot = snapshot
        self._values = {} if key == HOST else dict(_labelled(snapshot, key))
        #: Set of aggregates -> the groups of hosts in it; empty for those without the label.
        self._of_set: dict[int, tuple[Group, ...]] = {}

    def of(self, host: int, aggregate_set: int) -> tuple[Group, ...]:
        """The groups of a host, at least one.

        Args:
            host: its key (`Hosts.keys`).
            aggregate_set: what its root is in.
        """
        groups = self._of_set.get(aggregate_set)
        if groups is None:
            members = self._snapshot.aggregate_sets.members(aggregate_set)
            values = {self._values[each] for each in members if each in self._values}
            groups = self._of_set[aggregate_set] = tuple(sorted(values))
        return groups or (host,)

    def mask(self, group: Group, hosts: Rows, aggregate_sets: Rows) -> Mask:
        """Which of some hosts are in a group."""
        if isinstance(group, int):
            alone: Mask = hosts == group
            return alone
        having = [
            number
            for number in np.unique(aggregate_sets).tolist()
            if group in self.of(_NO_HOST, number)
        ]
        return np.isin(aggregate_sets, having)


def _labelled(snapshot: Snapshot, key: str) -> Iterator[tuple[AggregateId, str]]:
    """The aggregates with a label, and its value."""
    ids = snapshot.names.aggregate_ids
    for uuid, labels in snapshot.names.labels_of.items():
        if key in labels and uuid in ids:
            yield ids[uuid], labels[key]
