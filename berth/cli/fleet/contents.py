# SPDX-License-Identifier: Apache-2.0
"""What a provider has: inventory and usage, traits, aggregates and consumers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from berth.cli.columns import amount, print_columns

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

#: The fields of an inventory besides its total, with the headings of their columns.
FIELDS: Final[Mapping[str, str]] = {
    "reserved": "RESERVED",
    "allocation_ratio": "RATIO",
    "min_unit": "MIN",
    "max_unit": "MAX",
    "step_size": "STEP",
}

#: The value of max_unit that limits nothing.
_UNLIMITED: Final = 2**31 - 1

_HEADS: Final = ("CLASS", "USED", "CAPACITY", "TOTAL", *FIELDS.values())


@dataclass(frozen=True, slots=True)
class Contents:
    """A provider with everything that it has."""

    provider: Json
    #: Records by resource class.
    inventories: Mapping[str, Json]
    #: Used amounts by resource class.
    usages: Mapping[str, int]
    #: In alphabetical order.
    traits: Sequence[str]
    aggregates: Sequence[str]
    consumers: frozenset[str]


def contents_of(client: Client, provider: Json) -> Contents:
    """Read what a provider has."""
    path = f"/resource_providers/{provider['uuid']}"
    return Contents(
        provider,
        dict(sorted(client.read(f"{path}/inventories")["inventories"].items())),
        client.read(f"{path}/usages")["usages"],
        sorted(client.read(f"{path}/traits")["traits"]),
        client.read(f"{path}/aggregates")["aggregates"],
        frozenset(client.read(f"{path}/allocations")["allocations"]),
    )


def capacity_of(record: Json) -> int:
    """How much of an inventory can be allocated in all."""
    ratio: float = record["allocation_ratio"]
    usable: int = record["total"] - record["reserved"]
    return math.floor(usable * ratio)


def print_inventories(inventories: Mapping[str, Json], usages: Mapping[str, int]) -> None:
    """Print a table with a row for each inventory."""
    rows = [
        [
            name,
            amount(usages.get(name, 0)),
            amount(capacity_of(record)),
            amount(record["total"]),
            *(_field(record, field) for field in FIELDS),
        ]
        for name, record in sorted(inventories.items())
    ]
    print_columns(_HEADS, rows, right=_HEADS[1:])


def _field(record: Json, name: str) -> str:
    value = record[name]
    return "-" if name == "max_unit" and value == _UNLIMITED else amount(value)
