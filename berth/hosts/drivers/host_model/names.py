# SPDX-License-Identifier: Apache-2.0
"""How things are written: traits, resource classes, PCI addresses, and lists of CPUs or NUMA nodes.

PCI addresses and lists are in the notation of the kernel and libvirt.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from berth.model.names import CUSTOM_PREFIX
from berth.model.standard import STANDARD_TRAITS

#: In the kernel's notation: `0000:84:00.0`.
PCI_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

#: More CPUs than any kernel supports.
_ID_MAX = 1 << 16


#: The standard traits that this host's library knows; a service may know fewer.
STANDARD: Final = frozenset(STANDARD_TRAITS)


def trait_name(text: str) -> str:
    """A standard trait in whatever case, or else a custom one."""
    upper = text.upper()
    return upper if upper in STANDARD else custom_name(upper)


def custom_name(*parts: str) -> str:
    """The custom trait or resource class made of some parts, with a single CUSTOM_ prefix."""
    normal = re.sub(r"[^A-Z0-9]+", "_", "_".join(parts).upper()).strip("_")
    return CUSTOM_PREFIX + normal.removeprefix(CUSTOM_PREFIX)


def libvirt_name(address: str) -> str:
    """libvirt's name of a PCI device, which is also used for the providers of its vGPUs."""
    return "pci_" + address.replace(":", "_").replace(".", "_")


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
