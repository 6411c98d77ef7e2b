# SPDX-License-Identifier: Apache-2.0
"""From libvirt's names of CPU features to traits.

Source: spec/compute-side.md 5.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from berth.model.standard import STANDARD_TRAITS

_X86: Final = "HW_CPU_X86_"

#: Features that are called as the trait is.
_SAME_WORDS: Final = (
    "avx avx2 f16c mmx mpx sse sse2 sse4a ssse3 tbm xop fma4 abm 3dnow avx512f avx512cd avx512pf "
    "avx512er avx512vl avx512bw avx512dq avx512vnni avx512vbmi avx512ifma avx512vbmi2 "
    "avx512bitalg bmi2"
)

_OTHER: Final[Mapping[str, tuple[str, ...]]] = {
    "aes": ("AESNI",),
    "pclmuldq": ("CLMUL",),
    "fma": ("FMA3",),
    "bmi1": ("BMI",),
    "sha-ni": ("SHA",),
    "pni": ("SSE3",),
    "sse3": ("SSE3",),
    "sse4.1": ("SSE41",),
    "sse4.2": ("SSE42",),
    "avx512-vpopcntdq": ("AVX512VPOPCNTDQ",),
    "vaes": ("AVX512VAES",),
    "gfni": ("AVX512GFNI",),
    "vpclmulqdq": ("AVX512VPCLMULQDQ",),
    "amx-tile": ("AMXTILE",),
    "amx-int8": ("AMXINT8",),
    "amx-bf16": ("AMXBF16",),
    "vmx": ("VMX", "INTEL_VMX"),
    "svm": ("SVM", "AMD_SVM"),
}

HYPERTHREADING: Final = "HW_CPU_HYPERTHREADING"

_NAMES: Final = {**{name: (name.upper(),) for name in _SAME_WORDS.split()}, **_OTHER}

_BY_FEATURE: Final[Mapping[str, frozenset[str]]] = {
    feature: frozenset(_X86 + suffix for suffix in suffixes).intersection(STANDARD_TRAITS)
    for feature, suffixes in _NAMES.items()
}

#: The traits that are taken from a host where they do not hold: those that can be told.
TOLD: Final = frozenset({HYPERTHREADING}).union(
    *_BY_FEATURE.values(), (trait for trait in STANDARD_TRAITS if trait.startswith("HW_ARCH_"))
)


def cpu_traits(features: Iterable[str], *, arch: str, has_hyperthreads: bool) -> frozenset[str]:
    """The traits of a host."""
    traits = frozenset().union(*(_BY_FEATURE.get(name, ()) for name in features))
    architecture = f"HW_ARCH_{arch.upper()}"
    return traits | frozenset(
        name
        for name, holds in (
            (HYPERTHREADING, has_hyperthreads),
            (architecture, architecture in STANDARD_TRAITS),
        )
        if holds
    )
