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

from berth.hosts.drivers.hosts.devices import Device
from berth.hosts.drivers.hosts.names import custom_name
from berth.hosts.drivers.hosts.options import PCIRule
from berth.hosts.errors import BadConfiguration


@dataclass(frozen=True, slots=True)
class Function:
    """A function on the bus."""

    address: str
    #: Vendor and product, each four hexadecimal digits.
    device: tuple[str, str]
    #: That of the physical function, if this is a virtual one.
    physical: str | None
    is_network: bool
    #: The NUMA node that it is next to, where the host tells.
    node: int | None


@dataclass(frozen=True, slots=True)
class _Given:
    """A function that a rule admits."""

    function: Function
    resource_class: str
    traits: frozenset[str]

    @property
    def provider(self) -> str:
        """The address that its provider is named by."""
        return self.function.physical or self.function.address


def pci_devices(functions: Iterable[Function], rules: Sequence[PCIRule]) -> Iterator[Device]:
    """The devices that the rules admit, each by the first rule that does.

    Raises:
        BadConfiguration: a physical function is admitted beside virtual ones of it, or virtual
            functions of one as different things.
    """
    given = sorted(_given(functions, rules), key=_by_provider)
    faults: list[str] = []
    for physical, group in groupby(given, key=lambda one: one.provider):
        together = list(group)
        faults += _faults(physical, together)
        one = together[0]
        yield Device(
            name=physical.upper(),
            address=physical,
            node=one.function.node,
            counts={one.resource_class: len(together)},
            traits=one.traits,
        )
    if faults:
        raise BadConfiguration(faults)


def functions_given(
    functions: Iterable[Function], rules: Sequence[PCIRule]
) -> dict[str, tuple[str, str]]:
    """By the address of each function that is given out, its provider's address and its class."""
    return {
        one.function.address: (one.provider, one.resource_class) for one in _given(functions, rules)
    }


def _given(functions: Iterable[Function], rules: Sequence[PCIRule]) -> Iterator[_Given]:
    for one in functions:
        admitting = (rule for rule in rules if rule.admits(one.address, one.device, one.physical))
        if (rule := next(admitting, None)) is not None:
            resource_class = rule.resource_class or custom_name("PCI", *one.device)
            yield _Given(one, resource_class, _traits(one, rule))


def _by_provider(one: _Given) -> tuple[str, str]:
    return one.provider, one.function.address


def _traits(function: Function, rule: PCIRule) -> frozenset[str]:
    traits = set(rule.traits)
    if rule.physical_network:
        traits.add(custom_name("PHYSNET", rule.physical_network))
    if function.physical is not None and function.is_network:
        traits.add("HW_NIC_SRIOV")
    return frozenset(traits)


def _faults(physical: str, together: Sequence[_Given]) -> Iterable[str]:
    virtual = [one.function.address for one in together if one.function.physical is not None]
    if 0 < len(virtual) < len(together):
        yield (
            f"pci: {physical} and its virtual function {virtual[0]} are both given out; give out "
            f"one or the other"
        )
    elif len({(one.resource_class, one.traits) for one in together}) > 1:
        yield (
            f"pci: the virtual functions of {physical} are given out as different things; one "
            f"resource class and one set of traits must do for all of them"
        )
