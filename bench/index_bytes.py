# SPDX-License-Identifier: Apache-2.0
"""What a provider takes in the index of a worker, in bytes by part.

    python -m bench.index_bytes           # 100,000 hosts
    python -m bench.index_bytes 1000000

The hosts are those of the scenario "flat", without a database around them. The kept texts of
answers are not counted: together they have a bound of their own.
"""

from __future__ import annotations

import sys
import tracemalloc
from collections import Counter
from functools import partial
from uuid import UUID

from berth.index.block import ARRAYS, Block
from berth.index.fleet import Fleet
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateId, ClassId, ProviderId
from berth.store.index_feed import FleetPart, FleetRows

_CLASSES = (0, 1, 2)
_PART = 16_384
_TIME = 1_700_000_000


def main(count: int) -> None:
    """Load a fleet, and print a table."""
    tracemalloc.start()
    fleet = Fleet(class_ids={}, trait_ids={})
    firsts = range(0, count, _PART)
    fleet.load(FleetPart(None, partial(rows_of, n, min(n + _PART, count))) for n in firsts)
    snapshot = fleet.snapshot()
    total, _ = tracemalloc.get_traced_memory()
    parts = bytes_of(snapshot)
    parts["maps from uuid, name and id, and the rest"] = total - parts.total()
    for part, size in parts.most_common():
        print(f"{part:45} {size / count:7.1f}")
    print(f"{'a provider with three inventories':45} {total / count:7.1f}")
    print(f"{f'{count:,} providers, MB':45} {total / 1e6:7.1f}")


def rows_of(first: int, end: int) -> FleetRows:
    """Some hosts with three inventories, each in one of three aggregates."""
    rows = FleetRows([], [], [], [], [])
    for number in map(ProviderId, range(first + 1, end + 1)):
        uuid, name = str(UUID(int=number << 64)), f"bench-host-{number:07}"
        rows.providers.append((number, uuid, None, number, name, 3, _TIME))
        rows.inventories.extend(
            (number, ClassId(each), 64, 0, 1.0, 0, 1, 64, 1, _TIME) for each in _CLASSES
        )
        rows.aggregates.append((number, AggregateId(number % 3)))
    return rows


def bytes_of(snapshot: Snapshot) -> Counter[str]:
    """The bytes of the blocks, by field."""
    sizes: Counter[str] = Counter()
    for _, block in snapshot.occupied():
        for name in Block.__struct_fields__:
            size = getattr(getattr(block, name), "nbytes", None)
            if size is not None:
                sizes[name] += size
        for columns in block.columns.values():
            for name in ARRAYS:
                sizes[f"{name} of three classes"] += getattr(columns, name).nbytes
    return sizes


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
