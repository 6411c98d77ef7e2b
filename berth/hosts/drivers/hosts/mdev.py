# SPDX-License-Identifier: Apache-2.0
"""Mediated devices: what their parents have, and could still create.

Each parent device offers one type. Existing devices of the type and those that could still be
created are counted together, so that creating one changes nothing.
Source: spec/compute-side.md 4.4 and 5.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.hosts.options import MdevRule
from berth.hosts.errors import BadConfiguration


@dataclass(frozen=True, slots=True)
class MdevParent:
    """A device that can have mediated devices."""

    #: libvirt's name: `pci_0000_84_00_0`.
    name: str
    #: None if it is not a PCI device.
    address: str | None
    #: The nearest NUMA node, if the host knows it.
    node: int | None
    #: The number of existing devices, by type.
    made: Mapping[str, int]
    #: The number that could still be created, by type, if no other type is created meanwhile.
    available: Mapping[str, int]
    #: The address of the physical function, if this is a virtual one.
    physical: str | None = None
    #: Whether the device does not say how many fit at once, so that a limit must be configured.
    needs_limit: bool = False

    @property
    def whole(self) -> str:
        """The device whose memory is shared: a GPU's virtual functions share the GPU's memory."""
        return self.physical or self.name


def mdev_devices(parents: Iterable[MdevParent], rules: Sequence[MdevRule]) -> Iterator[Device]:
    """The parents that have, or could create, mediated devices of their configured type.

    A rule's limit applies to a device with all its virtual functions; existing mediated devices
    always
    count, and first.

    Raises:
        BadConfiguration: a rule has no limit for a parent that needs one.
    """
    given: Counter[str] = Counter()
    for parent in sorted(
        parents, key=lambda candidate: (not any(candidate.made.values()), candidate.name)
    ):
        if (rule := _rule_for(parent, rules)) is None:
            continue
        made = parent.made.get(rule.type, 0)
        total = made + parent.available.get(rule.type, 0)
        is_chosen = parent.physical is not None and bool(rule.parents)
        needs_limit = (parent.needs_limit or parent.physical is not None) and not is_chosen
        if total and needs_limit and rule.instances_max is None:
            raise BadConfiguration(
                [
                    f"mdev, {rule.type}: {parent.whole} does not say how many fit at once; set "
                    f"instances_max"
                ]
            )
        if rule.instances_max is not None:
            total = max(made, min(total, rule.instances_max - given[parent.whole]))
            given[parent.whole] += total
        if total:
            is_pci = parent.address is not None
            yield Device(
                name=parent.name if is_pci else f"mdev_{parent.name}",
                address=parent.address,
                node=parent.node,
                counts={rule.resource_class: total},
                traits=rule.traits,
                physical=parent.physical,
                form=rule.type,
            )


def mdev_notices(parents: Sequence[MdevParent], rules: Sequence[MdevRule]) -> Iterator[str]:
    """Notices of mediated devices that are not offered, and of rules without a device."""
    for parent in parents:
        rule = _rule_for(parent, rules)
        if rule and not parent.needs_limit and rule.type not in {*parent.made, *parent.available}:
            yield f"{parent.name} is not offered: it can have no mediated devices of {rule.type}"
        others = {kind for kind, count in parent.made.items() if count}
        if others := others - {rule.type if rule else None}:
            listed = ", ".join(sorted(others))
            yield f"{parent.name} has mediated devices of {listed}, which no rule offers"
    names = {parent.name.lower() for parent in parents}
    for rule in rules:
        for name in sorted(rule.parents - names):
            yield f"options.mdev: the host has no {name} that can have mediated devices"


def cut_up(parents: Iterable[MdevParent], rules: Sequence[MdevRule]) -> frozenset[str]:
    """The addresses of devices that are not offered whole, because they have or may have mediated
    devices.
    """
    return frozenset(
        address
        for parent in parents
        if any(parent.made.values()) or _rule_for(parent, rules) is not None
        for address in (parent.address, parent.physical)
        if address is not None
    )


def _rule_for(parent: MdevParent, rules: Sequence[MdevRule]) -> MdevRule | None:
    """The rule that names a parent, or else the one that names none."""
    named = [rule for rule in rules if parent.name.lower() in rule.parents]
    return next(iter([*named, *(rule for rule in rules if not rule.parents)]), None)
