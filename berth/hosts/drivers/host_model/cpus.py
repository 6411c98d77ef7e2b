# SPDX-License-Identifier: Apache-2.0
"""The CPUs of a host: on which NUMA nodes they are, which are on offer, and their traits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from berth.hosts.drivers.host_model.names import STANDARD, write_id_list
from berth.hosts.drivers.host_model.options import HostOptions
from berth.hosts.errors import BadConfiguration


@dataclass(frozen=True, slots=True)
class Topology:
    """The CPUs of a host."""

    #: All CPUs, online or not.
    present: frozenset[int]
    online: frozenset[int]
    #: The NUMA nodes, in ascending order, including those without CPUs or without memory.
    nodes: tuple[int, ...]
    #: The node of each CPU.
    node_of: Mapping[int, int]
    #: Whether a core runs several threads.
    has_threads: bool
    #: The architecture, as `uname -m` names it.
    machine: str
    #: The CPUs that run on an unknown node.
    lost: frozenset[int]
    #: What is left open, a sentence each.
    notices: tuple[str, ...] = ()


def cpu_sets(topology: Topology, options: HostOptions) -> tuple[frozenset[int], frozenset[int]]:
    """The CPUs on offer as VCPU and as PCPU, as configured; by default VCPU, all that are online.

    A dedicated CPU counts even if it is offline: it is brought online for its consumer, and the
    inventory does not change with power management.

    Raises:
        BadConfiguration: the host does not have one of them.
    """
    shared: frozenset[int] | None = options.cpu_shared
    dedicated: frozenset[int] = options.cpu_dedicated
    faults = [
        f"{option} names CPU {', '.join(map(str, sorted(strange)))}, but the host has CPUs "
        f"{write_id_list(topology.present)}"
        for option, cpus in (("cpu_shared", shared or frozenset()), ("cpu_dedicated", dedicated))
        if (strange := cpus - topology.present)
    ]
    if faults:
        raise BadConfiguration(*faults)
    if shared is None:
        shared = frozenset() if dedicated else topology.online
    return shared & topology.online, dedicated


def cpu_notices(topology: Topology, options: HostOptions) -> Iterator[str]:
    """Notices of CPUs that are not offered because they are offline, or are offered on a guess."""
    shared = options.cpu_shared or (frozenset() if options.cpu_dedicated else topology.present)
    if offline := shared - topology.online:
        yield f"CPUs {write_id_list(offline)} are offline, and are not offered as VCPU"
    if topology.lost:
        yield (
            f"It is unknown on which NUMA node CPUs {write_id_list(topology.lost)} are: each is "
            "offered on the node of the CPU before it"
        )


def nodes_of(
    present: frozenset[int], node_of_known: Mapping[int, int], nodes: Sequence[int]
) -> dict[int, int]:
    """The NUMA node of every CPU; for a CPU that was never online, that of the next lower CPU.

    Args:
        node_of_known: the nodes of CPUs that are online, or were.
    """
    node_of: dict[int, int] = {}
    node = min((node_of_known[cpu] for cpu in present & node_of_known.keys()), default=nodes[0])
    for cpu in sorted(present):
        node = node_of_known.get(cpu, node)
        node_of[cpu] = node
    return node_of


# --- Processor flags, as the kernel names them, to traits. Source: spec/compute-side.md 5.2 -------

_HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"

_ARCHITECTURE: Final = "HW_ARCH_"
_X86: Final = "HW_CPU_X86_"
_ARM: Final = "HW_CPU_AARCH64_"

#: Flags with the same name as the trait.
_SAME_WORDS: Final = (
    "avx avx2 f16c mmx mpx sse sse2 sse4a ssse3 tbm xop fma4 abm 3dnow avx512f avx512cd avx512pf "
    "avx512er avx512vl avx512bw avx512dq bmi2 avx512vbmi avx512ifma stibp sgx pdpe1gb"
)
_SAME: Final = frozenset(_SAME_WORDS.split())

#: The traits of flags with another name, by flag.
_OTHER: Final[Mapping[str, tuple[str, ...]]] = {
    "aes": ("AESNI",),
    "pclmulqdq": ("CLMUL",),
    "fma": ("FMA3",),
    "bmi1": ("BMI",),
    "sha_ni": ("SHA",),
    "pni": ("SSE3",),
    "sse4_1": ("SSE41",),
    "sse4_2": ("SSE42",),
    "avx512_vnni": ("AVX512VNNI",),
    "avx512_vbmi2": ("AVX512VBMI2",),
    "avx512_bitalg": ("AVX512BITALG",),
    "avx512_vpopcntdq": ("AVX512VPOPCNTDQ",),
    "vaes": ("AVX512VAES",),
    "gfni": ("AVX512GFNI",),
    "vpclmulqdq": ("AVX512VPCLMULQDQ",),
    "amx_tile": ("AMXTILE",),
    "amx_int8": ("AMXINT8",),
    "amx_bf16": ("AMXBF16",),
    "vmx": ("VMX", "INTEL_VMX"),
    "svm": ("SVM", "AMD_SVM"),
    "pcid": ("INTEL_PCID",),
    "md_clear": ("INTEL_MD_CLEAR",),
    "rtm": ("TSX",),
    "virt_ssbd": ("AMD_VIRT_SSBD",),
}

#: By vendor: a flag combination, and its trait.
_OF_VENDOR: Final = {
    "GenuineIntel": ((("ssbd",), "INTEL_SSBD"), (("ibrs", "ibpb"), "INTEL_SPEC_CTRL")),
    "AuthenticAMD": ((("ssbd",), "AMD_SSBD"), (("ibpb",), "AMD_IBPB")),
}

#: Traits that follow from flags alone.
_FLAG_TRAITS: Final = (
    frozenset({_X86 + flag.upper() for flag in _SAME})
    | {_X86 + trait for traits in _OTHER.values() for trait in traits}
) & STANDARD

#: Traits that follow from flags and vendor.
VENDOR_TRAITS: Final = frozenset(
    _X86 + trait for rules in _OF_VENDOR.values() for _, trait in rules
)

#: Traits of the same names as the features of 64-bit ARM processors.
_ARM_TRAITS: Final = frozenset(trait for trait in STANDARD if trait.startswith(_ARM))

#: The traits of architectures.
_ARCHITECTURES: Final = frozenset(trait for trait in STANDARD if trait.startswith(_ARCHITECTURE))


#: The traits that can be detected without the vendor: a host has no others of them.
CPU_TRAITS: Final = _FLAG_TRAITS | _ARM_TRAITS | _ARCHITECTURES | {_HYPERTHREADING}


def traits_of_flags(flags: frozenset[str], machine: str, vendor: str = "") -> frozenset[str]:
    """The traits of a processor with some flags; those that depend on the vendor if known.

    The same word means something else on another architecture, as `aes` does.

    Args:
        machine: the architecture, as `uname -m` names it.
    """
    return STANDARD & set(_traits_of_flags(flags, machine, vendor))


def _traits_of_flags(flags: frozenset[str], machine: str, vendor: str) -> Iterator[str]:
    if machine == "aarch64":
        yield from (_ARM + flag.upper() for flag in flags)
    if re.fullmatch("x86_64|i[3-6]86", machine):
        yield from (_X86 + flag.upper() for flag in flags & _SAME)
        yield from (_X86 + trait for flag in flags & _OTHER.keys() for trait in _OTHER[flag])
        for needed, trait in _OF_VENDOR.get(vendor, ()):
            if flags.issuperset(needed):
                yield _X86 + trait


def traits_of_machine(topology: Topology) -> frozenset[str]:
    """The traits of an architecture, and of hyperthreading."""
    traits = {f"{_ARCHITECTURE}{topology.machine.upper()}"} & _ARCHITECTURES
    return frozenset(traits | ({_HYPERTHREADING} if topology.has_threads else set()))
