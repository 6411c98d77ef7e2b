# SPDX-License-Identifier: Apache-2.0
"""PCI devices and virtual functions that an operator gives out.

A device is a provider of its own; the virtual functions of one physical function are counted
together, on a provider that is named by the physical one.
Source: spec/compute-side.md 4.5 and 5.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from berth.compute.drivers.linux.devices import Device, node_of
from berth.compute.drivers.linux.files import HostFiles
from berth.compute.drivers.linux.names import custom_name
from berth.compute.drivers.linux.options import PCIRule
from berth.compute.errors import BadConfiguration

_DEVICES: Final = "sys/bus/pci/devices"

#: The first digits of the PCI class of what carries a network.
_NETWORK: Final = "0x02"


@dataclass(frozen=True, slots=True)
class _Function:
    """A function on the bus that a rule admits."""

    address: str
    #: That of the physical function, if this is a virtual one, else its own.
    physical: str
    resource_class: str
    traits: frozenset[str]

    @property
    def is_virtual(self) -> bool:
        return self.address != self.physical


def read_pci(files: HostFiles, rules: Sequence[PCIRule]) -> Iterator[Device]:
    """The devices that the rules admit, each by the first rule that does.

    Raises:
        BadConfiguration: a physical function is admitted beside virtual ones of it, or virtual
            functions of one as different things.
    """
    functions = sorted(_functions(files, rules), key=lambda function: function.physical)
    faults: list[str] = []
    for physical, group in groupby(functions, key=lambda function: function.physical):
        together = list(group)
        faults += _faults(physical, together)
        one = together[0]
        yield Device(
            name=physical.upper(),
            address=physical,
            node=node_of(files, physical),
            counts={one.resource_class: len(together)},
            traits=one.traits,
        )
    if faults:
        raise BadConfiguration(faults)


def _functions(files: HostFiles, rules: Sequence[PCIRule]) -> Iterator[_Function]:
    if not rules:
        return
    for address in files.names(_DEVICES):
        path = f"{_DEVICES}/{address}"
        vendor, product = (
            f"{files.number(f'{path}/{what}') or 0:04x}" for what in ("vendor", "device")
        )
        physical = files.link(f"{path}/physfn")
        for rule in rules:
            if rule.admits(address, (vendor, product), physical):
                yield _Function(
                    address,
                    physical or address,
                    rule.resource_class or custom_name("PCI", vendor, product),
                    _traits(files, path, rule, is_virtual=physical is not None),
                )
                break


def _traits(files: HostFiles, path: str, rule: PCIRule, *, is_virtual: bool) -> frozenset[str]:
    traits = set(rule.traits)
    if rule.physical_network:
        traits.add(custom_name("PHYSNET", rule.physical_network))
    if is_virtual and (files.text(f"{path}/class") or "").startswith(_NETWORK):
        traits.add("HW_NIC_SRIOV")
    return frozenset(traits)


def _faults(physical: str, together: Sequence[_Function]) -> Iterable[str]:
    virtual = [function.address for function in together if function.is_virtual]
    if 0 < len(virtual) < len(together):
        yield (
            f"pci: {physical} and its virtual function {virtual[0]} are both given out; give out "
            f"one or the other"
        )
    elif len({(function.resource_class, function.traits) for function in together}) > 1:
        yield (
            f"pci: the virtual functions of {physical} are given out as different things; one "
            f"resource class and one set of traits must do for all of them"
        )
