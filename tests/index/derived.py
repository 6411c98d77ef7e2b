# SPDX-License-Identifier: Apache-2.0
"""What a block's columns say twice: the second time for the search, which must be able to believe
it."""

from __future__ import annotations

from collections.abc import Iterator

from berth.index.snapshot import Snapshot


def derived_faults(snapshot: Snapshot) -> Iterator[str]:
    """Rooms, and bounds, that do not follow from the other columns."""
    for slot, block in snapshot.occupied():
        for class_id, columns in block.columns.items():
            capacity, used = columns.capacity.tolist(), columns.used.tolist()
            most, room = columns.max_unit.tolist(), columns.room.tolist()
            for line, rows in enumerate(capacity):
                for row in range(len(rows)):
                    free = capacity[line][row] - used[line][row]
                    due = max(0, min(free, most[line][row]))
                    if room[line][row] != due:
                        yield f"slot {slot}, class {class_id}, at {line, row}: room is not {due}"
            if columns.min_unit_max < columns.min_unit.max():
                yield f"slot {slot}, class {class_id}: min_unit_max is too small"
            if not columns.stepped and columns.step_size.max() > 1:
                yield f"slot {slot}, class {class_id}: stepped is false"
