# SPDX-License-Identifier: Apache-2.0
"""The bounds of a request of `/berth/v1`; `GET /berth/v1` shows them all.

Source: spec/beyond.md 11.
"""

from __future__ import annotations

from typing import Final

#: Request groups.
GROUPS_MAX: Final = 64
#: Resource classes of one group.
CLASSES_MAX: Final = 32
#: Items in one list of conditions.
ITEMS_MAX: Final = 64
#: Provider references in one list.
REFERENCES_MAX: Final = 10_000
#: Relations between groups.
RELATIONS_MAX: Final = 64
#: Preferences of an order.
PREFERENCES_MAX: Final = 16
#: Flavors that an order preserves, and hosts that it scores then.
PRESERVED_MAX: Final = 16
PRESERVE_AMONG_MAX: Final = 4_096
#: Hosts that a scenario adds.
ADDED_HOSTS_MAX: Final = 10_000
#: Providers of these, and how many of them may share: each serves many hosts at once.
ADDED_PROVIDERS_MAX: Final = 100_000
ADDED_SHARING_MAX: Final = 1_000
#: Requests of which the first that fits counts.
ALTERNATIVES_MAX: Final = 8
#: Candidates in an answer.
CANDIDATES_MAX: Final = 10_000
#: Consumers that one call places.
CONSUMERS_MAX: Final = 256
#: Keys of labels by which one call spreads its consumers.
LABEL_KEYS_MAX: Final = 32
#: How often it chooses again if others are faster.
TRIES_MAX: Final = 32
#: Hosts that an explanation names because they come nearest to fitting.
NEAREST_MAX: Final = 50
#: Bytes that a worker keeps for the answer of one question, about.
QUESTION_BYTES_MAX: Final = 2**28
#: Bytes in the body of a request.
BODY_BYTES_MAX: Final = 2**20
#: Labels of one aggregate.
LABELS_MAX: Final = 32

#: Bytes of a request that is kept with a placement; no request is refused for it.
KEPT_REQUEST_BYTES_MAX: Final = 16_384

#: Flavors of one database.
FLAVORS_MAX: Final = 1_000
#: Bytes in the stored request of one flavor: every worker keeps all of them in memory.
FLAVOR_BYTES_MAX: Final = 16_384

#: Drains of one database.
DRAINS_MAX: Final = 1_000
#: Providers that one drain names: every worker keeps them in memory.
DRAIN_PROVIDERS_MAX: Final = 100_000

#: Flavors and requests of one question of capacity.
CAPACITY_REQUESTS_MAX: Final = 100
#: Labels by which it divides hosts, and values of each.
CAPACITY_KEYS_MAX: Final = 4
CAPACITY_VALUES_MAX: Final = 1_000
#: Hosts that it names because most fit on them.
CAPACITY_BEST_MAX: Final = 1_000
#: Lines of single hosts in its answer.
CAPACITY_HOSTS_MAX: Final = 10_000
#: Lines of labels, and of the hosts on which most fit, in its answer.
CAPACITY_LINES_MAX: Final = 100_000

#: Providers of a tree that one request writes.
TREE_PROVIDERS_MAX: Final = 1_000
#: Seconds of a lease, from the time when it is given or renewed: a day.
LEASE_SECONDS_MAX: Final = 86_400

#: The bounds by their names on the wire.
BOUNDS: Final = {
    "max_groups": GROUPS_MAX,
    "max_classes": CLASSES_MAX,
    "max_items": ITEMS_MAX,
    "max_references": REFERENCES_MAX,
    "max_relations": RELATIONS_MAX,
    "max_preferences": PREFERENCES_MAX,
    "max_preserved": PRESERVED_MAX,
    "max_preserve_among": PRESERVE_AMONG_MAX,
    "max_added_hosts": ADDED_HOSTS_MAX,
    "max_added_providers": ADDED_PROVIDERS_MAX,
    "max_added_sharing": ADDED_SHARING_MAX,
    "max_alternatives": ALTERNATIVES_MAX,
    "max_candidates": CANDIDATES_MAX,
    "max_consumers": CONSUMERS_MAX,
    "max_label_keys": LABEL_KEYS_MAX,
    "max_tries": TRIES_MAX,
    "max_lease_seconds": LEASE_SECONDS_MAX,
    "max_nearest": NEAREST_MAX,
    "max_body_bytes": BODY_BYTES_MAX,
    "max_labels": LABELS_MAX,
    "max_flavors": FLAVORS_MAX,
    "max_flavor_bytes": FLAVOR_BYTES_MAX,
    "max_drains": DRAINS_MAX,
    "max_drain_providers": DRAIN_PROVIDERS_MAX,
    "max_capacity_requests": CAPACITY_REQUESTS_MAX,
    "max_capacity_keys": CAPACITY_KEYS_MAX,
    "max_capacity_values": CAPACITY_VALUES_MAX,
    "max_capacity_best": CAPACITY_BEST_MAX,
    "max_capacity_hosts": CAPACITY_HOSTS_MAX,
    "max_capacity_lines": CAPACITY_LINES_MAX,
    "max_tree_providers": TREE_PROVIDERS_MAX,
}
