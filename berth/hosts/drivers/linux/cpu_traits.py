# SPDX-License-Identifier: Apache-2.0
"""What every CPU of the host can do, as /proc/cpuinfo says.

Flags of the host, that is: what a guest sees of them is its hypervisor's matter.
Source: spec/compute-side.md 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from berth.hosts.drivers.hosts.cpu_traits import FLAG_TRAITS, VENDOR_TRAITS, traits_of_flags
from berth.hosts.drivers.hosts.names import standard_traits
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import HostUnreadable

_CPUINFO: Final = "proc/cpuinfo"

_ARM: Final = "HW_CPU_AARCH64_"
_POWER: Final = "HW_CPU_PPC64LE_"

#: The traits that follow from the words: those of them that a host does not have are taken away.
#: Of the others (memory encryption, what no word tells) nothing is known here.
CPU_TRAITS: Final = (
    FLAG_TRAITS
    | VENDOR_TRAITS
    | {trait for trait in standard_traits() if trait.startswith((_ARM, _POWER))}
)


def read_cpu_traits(files: HostFiles) -> frozenset[str]:
    """The traits of what all CPUs of the host can do.

    Raises:
        HostUnreadable: the host does not tell: one look that failed must not take them away.
    """
    if not files.text(_CPUINFO):
        raise HostUnreadable(f"{files.path(_CPUINFO)} does not say what the CPUs can do")
    found = [frozenset(_traits_of(block)) for block in _processors(files)]
    return frozenset.intersection(*found) & standard_traits() if found else frozenset()


def _processors(files: HostFiles) -> Iterator[dict[str, str]]:
    """What /proc/cpuinfo says of each processor, by name; other paragraphs are left out."""
    for paragraph in (files.text(_CPUINFO) or "").split("\n\n"):
        lines = (line.partition(":") for line in paragraph.splitlines())
        said = {name.strip(): value.strip() for name, _, value in lines}
        if "processor" in said:
            yield said


def _traits_of(said: Mapping[str, str]) -> Iterator[str]:
    flags = frozenset(said.get("flags", "").split())
    yield from traits_of_flags(flags, said.get("vendor_id", ""))
    yield from (_ARM + word.upper() for word in said.get("Features", "").split())
    if (model := said.get("cpu", "").split(" ")[0].rstrip(",")).startswith("POWER"):
        yield _POWER + model
