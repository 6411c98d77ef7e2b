# SPDX-License-Identifier: Apache-2.0
"""How many guests with encrypted memory the processors support: a provider for each kind.

Each kind has its own slots, and a guest takes one.
Source: spec/compute-side.md 4.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.hosts.names import standard_traits

#: The provider name and the trait of each kind, by the kernel's name.
_KINDS: Final = {
    "sev": ("amd_sev", "HW_CPU_X86_AMD_SEV"),
    "sev_es": ("amd_sev_es", "HW_CPU_X86_AMD_SEV_ES"),
    "tdx": ("intel_tdx", "HW_CPU_X86_INTEL_TDX"),
}


def encryption_devices(slots: Mapping[str, int]) -> Iterator[Device]:
    """The providers of the kinds that have slots."""
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
