# SPDX-License-Identifier: Apache-2.0
"""Mediated devices: what the devices that can be cut into them have, and could still make.

One type is given out for each parent device. Those of the type that exist and those that could
still be made are counted together, so that making one changes nothing.
Source: spec/compute-side.md 4.4 and 5.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from berth.compute.drivers.linux.devices import Device, libvirt_name, node_of
from berth.compute.drivers.linux.files import HostFiles
from berth.compute.drivers.linux.options import MdevRule

_PARENTS: Final = "sys/class/mdev_bus"
_PCI_ADDRESS: Final = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def read_mdev(files: HostFiles, rules: Sequence[MdevRule]) -> Iterator[Device]:
    """The parents that have, or could make, mediated devices of the type they are to have."""
    for parent in files.names(_PARENTS) if rules else ():
        rule = _rule_for(parent, rules)
        count = _count(files, parent, rule.type) if rule else 0
        if rule and count:
            is_pci = _PCI_ADDRESS.fullmatch(parent) is not None
            yield Device(
                name=libvirt_name(parent) if is_pci else f"mdev_{parent}",
                address=parent if is_pci else None,
                node=node_of(files, parent) if is_pci else None,
                counts={rule.resource_class: count},
                traits=rule.traits,
            )


def _rule_for(parent: str, rules: Sequence[MdevRule]) -> MdevRule | None:
    """The rule that names a parent, else the one that names none."""
    named = [rule for rule in rules if parent.lower() in rule.parents]
    return next(iter([*named, *(rule for rule in rules if not rule.parents)]), None)


def _count(files: HostFiles, parent: str, kind: str) -> int:
    path = f"{_PARENTS}/{parent}/mdev_supported_types/{kind}"
    made = len(files.names(f"{path}/devices"))
    return made + (files.number(f"{path}/available_instances") or 0)
