# SPDX-License-Identifier: Apache-2.0
"""Converts libvirt's names of CPU features to traits.

Source: spec/compute-side.md 5.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from berth.hosts.drivers.hosts.cpu_traits import (
    ARCHITECTURES,
    ARM_TRAITS,
    FLAG_TRAITS,
    HYPERTHREADING,
    traits_of_flags,
    traits_of_machine,
)
from berth.hosts.drivers.hosts.names import standard_traits

#: Features to which the kernel gives another name, beyond - and . for _.
_FLAGS: Final[Mapping[str, str]] = {
    "pclmuldq": "pclmulqdq",
    "sse3": "pni",
    "avx512vnni": "avx512_vnni",
    "avx512vbmi2": "avx512_vbmi2",
    "avx512bitalg": "avx512_bitalg",
}

#: The traits that the driver removes from a host that does not have them: those that it can detect.
DETECTABLE: Final = FLAG_TRAITS | ARM_TRAITS | ARCHITECTURES | {HYPERTHREADING}


def cpu_traits(features: Iterable[str], *, arch: str, has_hyperthreads: bool) -> frozenset[str]:
    """The traits of a host."""
    flags = frozenset(_FLAGS.get(name, re.sub("[-.]", "_", name)) for name in features)
    traits = frozenset(traits_of_flags(flags, arch)) & standard_traits()
    return traits | traits_of_machine(arch, has_threads=has_hyperthreads)
