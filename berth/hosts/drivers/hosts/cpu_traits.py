# SPDX-License-Identifier: Apache-2.0
"""Converts processor flags, as the kernel names them, to traits.

Source: spec/compute-side.md 5.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from berth.hosts.drivers.hosts.names import standard_traits

HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"

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
FLAG_TRAITS: Final = (
    frozenset({_X86 + flag.upper() for flag in _SAME})
    | {_X86 + trait for traits in _OTHER.values() for trait in traits}
) & standard_traits()

#: Traits that follow from flags and vendor.
VENDOR_TRAITS: Final = frozenset(
    _X86 + trait for rules in _OF_VENDOR.values() for _, trait in rules
)

#: Traits of the same names as the features of 64-bit ARM processors.
ARM_TRAITS: Final = frozenset(trait for trait in standard_traits() if trait.startswith(_ARM))

#: The traits of architectures.
ARCHITECTURES: Final = frozenset(
    trait for trait in standard_traits() if trait.startswith(_ARCHITECTURE)
)


def traits_of_flags(flags: frozenset[str], machine: str, vendor: str = "") -> Iterator[str]:
    """The traits of a processor with some flags; those that depend on the vendor if known.

    The same word means something else on another architecture, as `aes` does.

    Args:
        machine: the architecture, as `uname -m` names it.
    """
    if machine == "aarch64":
        yield from {_ARM + flag.upper() for flag in flags} & ARM_TRAITS
    if not re.fullmatch("x86_64|i[3-6]86", machine):
        return
    yield from (_X86 + flag.upper() for flag in flags & _SAME)
    yield from (_X86 + trait for flag in flags & _OTHER.keys() for trait in _OTHER[flag])
    for needed, trait in _OF_VENDOR.get(vendor, ()):
        if flags.issuperset(needed):
            yield _X86 + trait


def traits_of_machine(machine: str, *, has_threads: bool) -> frozenset[str]:
    """The traits of an architecture, as `uname -m` names it, and of hyperthreading."""
    traits = {f"{_ARCHITECTURE}{machine.upper()}"} & ARCHITECTURES
    return frozenset(traits | ({HYPERTHREADING} if has_threads else set()))
