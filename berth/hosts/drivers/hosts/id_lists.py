# SPDX-License-Identifier: Apache-2.0
"""Lists of CPUs or NUMA nodes, in the notation of the kernel and libvirt."""

from __future__ import annotations

from collections.abc import Iterable

#: More CPUs than any kernel supports.
_ID_MAX = 1 << 16


def read_id_list(text: str) -> frozenset[int]:
    """The numbers in a list such as `0-3,^2,8`, in which `^` excludes numbers, whatever their
    position.

    Raises:
        ValueError: the text is not such a list.
    """
    ids: set[int] = set()
    without: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = part.removeprefix("^").partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            raise ValueError(f"{part} runs backwards")
        if numbers[0] < 0 or numbers[-1] > _ID_MAX:
            raise ValueError(f"{part} is too large")
        (without if part.startswith("^") else ids).update(numbers)
    return frozenset(ids - without)


def write_id_list(ids: Iterable[int]) -> str:
    """Numbers in the kernel's notation."""
    parts: list[list[int]] = []
    for number in sorted(ids):
        if parts and parts[-1][-1] == number - 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
