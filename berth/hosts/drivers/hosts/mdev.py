# SPDX-License-Identifier: Apache-2.0
"""Mediated devices: what the devices that can be cut into them have, and could still make.

One type is given out for each parent device. Those of the type that exist and those that could
still be made are counted together, so that making one changes nothing.
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
    """A device of which mediated devices can be made."""

    #: As libvirt calls it: `pci_0000_84_00_0`.
    name: str
    #: None where it is not a PCI device.
    address: str | None
    #: The NUMA node that it is next to, where the host tells.
    node: int | None
    #: How many of each type there are.
    made: Mapping[str, int]
    #: How many more of each type could be made, were no other type made meanwhile.
    available: Mapping[str, int]
    #: That of the physical function, if this is a virtual one.
    physical: str | None = None
    #: Whether the device does not say how many fit at once: a limit has to be configured.
    needs_limit: bool = False

    @property
    def whole(self) -> str:
        """What makes all of them together: a GPU's virtual functions share its memory."""
        return self.physical or self.name


def mdev_devices(parents: Iterable[MdevParent], rules: Sequence[MdevRule]) -> Iterator[Device]:
    """The parents that have, or could make, mediated devices of the type they are to have.

    Where a rule has a limit, that is what a device has at most, all of its virtual functions
    together; what exists counts in any case, and first.

    Raises:
        BadConfiguration: a rule has no limit for a parent that needs one.
    """
    given: Counter[str] = Counter()
    for parent in sorted(parents, key=lambda one: (not any(one.made.values()), one.name)):
        if (rule := _rule_for(parent, rules)) is None:
            continue
        made = parent.made.get(rule.type, 0)
        total = made + parent.available.get(rule.type, 0)
        is_chosen = parent.physical is not None and bool(rule.parents)
        needs_limit = (parent.needs_limit or parent.physical is not None) and not is_chosen
        if total and needs_limit and rule.instances_max is None:
            raise BadConfiguration(
                [
                    f"mdev, {rule.type}: {parent.whole} does not say how many of it fit at once; "
                    f"instances_max must say it"
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
            )


def cut_up(parents: Iterable[MdevParent], rules: Sequence[MdevRule]) -> frozenset[str]:
    """The addresses of what is not to be given out whole: there are mediated devices of it, or are
    to be."""
    return frozenset(
        address
        for parent in parents
        if any(parent.made.values()) or _rule_for(parent, rules) is not None
        for address in (parent.address, parent.physical)
        if address is not None
    )


def _rule_for(parent: MdevParent, rules: Sequence[MdevRule]) -> MdevRule | None:
    """The rule that names a parent, else the one that names none."""
    named = [rule for rule in rules if parent.name.lower() in rule.parents]
    return next(iter([*named, *(rule for rule in rules if not rule.parents)]), None)
