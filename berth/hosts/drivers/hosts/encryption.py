# SPDX-License-Identifier: Apache-2.0
"""How many guests' memory the processors can encrypt: a provider for each kind.

The kinds have slots of their own, and each guest takes one.
Source: spec/compute-side.md 4.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.hosts.names import standard_traits

#: By kind, as the kernel calls it, what its provider is called and its trait.
_KINDS: Final = {
    "sev": ("amd_sev", "HW_CPU_X86_AMD_SEV"),
    "sev_es": ("amd_sev_es", "HW_CPU_X86_AMD_SEV_ES"),
    "tdx": ("intel_tdx", "HW_CPU_X86_INTEL_TDX"),
}


def encryption_devices(slots: Mapping[str, int]) -> Iterator[Device]:
    """The providers of the kinds that have slots, by kind."""
    for kind, (name, trait) in _KINDS.items():
        if count := slots.get(kind, 0):
            yield Device(
                name=name,
                address=None,
                node=None,
                counts={"MEM_ENCRYPTION_CONTEXT": count},
                traits=frozenset({trait} & standard_traits()),
                unit_max=1,
            )
