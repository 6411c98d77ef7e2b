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


def unknown_encryption(slots: Mapping[str, int | None], *, who: str) -> Iterator[str]:
    """A notice of the kinds that are supported for an unknown number of guests.

    Args:
        who: does not tell the number, and what would.
    """
    kinds = [kind.upper().replace("_", "-") for kind, count in slots.items() if count is None]
    if kinds:
        yield (
            f"The host supports {' and '.join(kinds)} for an unknown number of guests, so none is "
            f"offered: {who}"
        )


def encryption_devices(slots: Mapping[str, int | None]) -> Iterator[Device]:
    """The providers of the kinds that have slots."""
    for kind, (name, trait) in _KINDS.items():
        if count := slots.get(kind):
            yield Device(
                name=name,
                address=None,
                node=None,
                counts={"MEM_ENCRYPTION_CONTEXT": count},
                traits=frozenset({trait} & standard_traits()),
                unit_max=1,
            )
