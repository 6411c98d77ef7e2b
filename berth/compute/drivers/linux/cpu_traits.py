# SPDX-License-Identifier: Apache-2.0
"""From the words of /proc/cpuinfo to traits: what every CPU of the host can do.

Flags of the host, that is: what a guest sees of them is its hypervisor's matter.
Source: spec/compute-side.md 5.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from berth.compute.drivers.linux.files import HostFiles
from berth.compute.drivers.linux.names import standard_traits

_X86: Final = "HW_CPU_X86_"
_ARM: Final = "HW_CPU_AARCH64_"
_POWER: Final = "HW_CPU_PPC64LE_"

#: Flags that are called as the trait is.
_SAME_WORDS: Final = (
    "avx avx2 f16c mmx mpx sse sse2 sse4a ssse3 tbm xop fma4 abm 3dnow avx512f avx512cd avx512pf "
    "avx512er avx512vl avx512bw avx512dq bmi2 avx512vbmi avx512ifma stibp sgx pdpe1gb"
)
_SAME: Final = frozenset(_SAME_WORDS.split())

#: By flag, the traits that are called otherwise.
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

#: By vendor: the flags that it takes together, and the trait.
_OF_VENDOR: Final = {
    "GenuineIntel": ((("ssbd",), "INTEL_SSBD"), (("ibrs", "ibpb"), "INTEL_SPEC_CTRL")),
    "AuthenticAMD": ((("ssbd",), "AMD_SSBD"), (("ibpb",), "AMD_IBPB")),
}

#: The traits that follow from the words: those of them that a host does not have are taken away.
#: Of the others (memory encryption, what no word tells) nothing is known here.
CPU_TRAITS: Final = frozenset(
    {_X86 + flag.upper() for flag in _SAME}
    | {_X86 + trait for traits in _OTHER.values() for trait in traits}
    | {_X86 + trait for rules in _OF_VENDOR.values() for _, trait in rules}
    | {trait for trait in standard_traits() if trait.startswith((_ARM, _POWER))}
)


def read_cpu_traits(files: HostFiles) -> frozenset[str]:
    """The traits of what all CPUs of the host can do, without those that no CPU has alone."""
    found = [frozenset(_traits_of(block)) for block in _processors(files)]
    return frozenset.intersection(*found) & standard_traits() if found else frozenset()


def _processors(files: HostFiles) -> Iterator[dict[str, str]]:
    """What /proc/cpuinfo says of each processor, by name; other paragraphs are left out."""
    for paragraph in (files.text("proc/cpuinfo") or "").split("\n\n"):
        lines = (line.partition(":") for line in paragraph.splitlines())
        said = {name.strip(): value.strip() for name, _, value in lines}
        if "processor" in said:
            yield said


def _traits_of(said: Mapping[str, str]) -> Iterator[str]:
    flags = frozenset(said.get("flags", "").split())
    yield from (_X86 + flag.upper() for flag in flags & _SAME)
    yield from (_X86 + trait for flag in flags & _OTHER.keys() for trait in _OTHER[flag])
    for needed, trait in _OF_VENDOR.get(said.get("vendor_id", ""), ()):
        if flags.issuperset(needed):
            yield _X86 + trait
    yield from (_ARM + word.upper() for word in said.get("Features", "").split())
    if (model := said.get("cpu", "").split(" ")[0].rstrip(",")).startswith("POWER"):
        yield _POWER + model
