# SPDX-License-Identifier: Apache-2.0
"""Lists of numbers as the kernel and libvirt write them, of CPUs or of NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterable

#: More CPUs than any kernel is built for.
_ID_MAX = 1 << 16


def read_id_list(text: str) -> frozenset[int]:
    """The numbers in a list such as `0-3,^2,8`; what has `^` before it is left out, wherever it
    stands.

    Raises:
        ValueError: the text is no such list.
    """
    ids: set[int] = set()
    without: set[int] = set()
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, _, last = part.removeprefix("^").partition("-")
        some = range(int(first), int(last or first) + 1)
        if not some:
            raise ValueError(f"{part} runs backwards")
        if some[0] < 0 or some[-1] > _ID_MAX:
            raise ValueError(f"{part} is too large")
        (without if part.startswith("^") else ids).update(some)
    return frozenset(ids - without)


def write_id_list(ids: Iterable[int]) -> str:
    """Numbers as the kernel writes them."""
    parts: list[list[int]] = []
    for one in sorted(ids):
        if parts and parts[-1][-1] == one - 1:
            parts[-1].append(one)
        else:
            parts.append([one])
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)
