# SPDX-License-Identifier: Apache-2.0
"""The paths of the API, as its clients spell them."""

from typing import Final
from urllib.parse import quote

#: What the paths of berth's own API begin with.
OWN: Final = "/berth/v1"
AGGREGATES: Final = f"{OWN}/aggregates"
CANDIDATES: Final = f"{OWN}/candidates"
CAPACITY: Final = f"{OWN}/capacity"
CHANGES: Final = f"{OWN}/changes"
CONSUMERS: Final = f"{OWN}/consumers"
DRAINS: Final = f"{OWN}/drains"
EXPLAIN: Final = f"{OWN}/explain"
FLAVORS: Final = f"{OWN}/flavors"
FLEET: Final = f"{OWN}/fleet"
LEASES: Final = f"{OWN}/leases"
PERMISSIONS: Final = f"{OWN}/permissions"
PLACE: Final = f"{OWN}/place"
PLACEMENTS: Final = f"{OWN}/placements"
TREES: Final = f"{OWN}/trees"


def path_of(*segments: str) -> str:
    """A path of the API; the segments may contain any characters."""
    return "".join(f"/{quote(segment, safe='')}" for segment in segments)


def tree_path(reference: str) -> str:
    """The path of the tree that contains a provider, by its UUID or its name."""
    return f"{TREES}{path_of(reference)}"


def consumer_path(reference: str) -> str:
    """The path of a consumer by its UUID, or by `project/name`."""
    return f"{CONSUMERS}{path_of(*reference.split('/'))}"
