# SPDX-License-Identifier: Apache-2.0
"""The features that every CPU of the host has, according to /proc/cpuinfo.

These are the host's features: what a guest sees is up to its hypervisor.
Source: spec/compute-side.md 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from berth.hosts.drivers.hosts.cpu_traits import (
    ARM_TRAITS,
    FLAG_TRAITS,
    VENDOR_TRAITS,
    traits_of_flags,
)
from berth.hosts.drivers.hosts.names import standard_traits
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import HostUnreadable

_CPUINFO: Final = "proc/cpuinfo"

_POWER: Final = "HW_CPU_PPC64LE_"

#: The traits that the driver removes from a host that does not have them: those that it can detect.
CPU_TRAITS: Final = (
    FLAG_TRAITS
    | VENDOR_TRAITS
    | ARM_TRAITS
    | {trait for trait in standard_traits() if trait.startswith(_POWER)}
)


def read_cpu_traits(files: HostFiles, machine: str) -> tuple[frozenset[str], frozenset[str]]:
    """The traits of the features that all CPUs of the host have, and those that only some have.

    Args:
        machine: the architecture, as `uname -m` names it.

    Raises:
        HostUnreadable: the file cannot be read: a single failure must not remove the traits.
    """
    if not files.text(_CPUINFO):
        raise HostUnreadable(f"{files.path(_CPUINFO)} does not describe the CPUs")
    traits = [standard_traits() & set(_traits_of(block, machine)) for block in _processors(files)]
    if not traits:
        return frozenset(), frozenset()
    of_all = frozenset.intersection(*traits)
    return of_all, frozenset.union(*traits) - of_all


def _processors(files: HostFiles) -> Iterator[dict[str, str]]:
    """The paragraphs of /proc/cpuinfo about processors, as mappings."""
    for paragraph in (files.text(_CPUINFO) or "").split("\n\n"):
        lines = (line.partition(":") for line in paragraph.splitlines())
        fields = {name.strip(): value.strip() for name, _, value in lines}
        if "processor" in fields:
            yield fields


def _traits_of(fields: Mapping[str, str], machine: str) -> Iterator[str]:
    words = fields.get("Features" if machine == "aarch64" else "flags", "")
    yield from traits_of_flags(frozenset(words.split()), machine, fields.get("vendor_id", ""))
    if (model := fields.get("cpu", "").split(" ")[0].rstrip(",")).startswith("POWER"):
        yield _POWER + model
