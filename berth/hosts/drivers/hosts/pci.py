# SPDX-License-Identifier: Apache-2.0
"""PCI devices and virtual functions that an operator offers.

A device is a provider of its own. The virtual functions of one physical function are counted
together, on a provider that is named after the physical one.
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
    """A PCI function."""

    address: str
    #: Vendor and product, each four hexadecimal digits.
    device: tuple[str, str]
    #: The address of the physical function, if this is a virtual one.
    physical: str | None
    is_network: bool
    #: The nearest NUMA node, if the host knows it.
    node: int | None
    #: Whether it is a whole GPU of NVIDIA.
    is_gpu: bool = False


@dataclass(frozen=True, slots=True)
class _Given:
    """A function that a rule selects."""

    function: Function
    resource_class: str
    traits: frozenset[str]

    @property
    def provider(self) -> str:
        """The address after which its provider is named."""
        return self.function.physical or self.function.address


def pci_devices(functions: Iterable[Function], rules: Sequence[PCIRule]) -> Iterator[Device]:
    """The devices that the rules select, each by the first rule that does.

    Raises:
        BadConfiguration: a physical function is selected beside its own virtual ones, or the
            virtual
            functions of one device are offered as different things.
    """
    given = sorted(_given(functions, rules), key=_by_provider)
    faults: list[str] = []
    for physical, group in groupby(given, key=lambda offered: offered.provider):
        together = list(group)
        faults += _faults(physical, together)
        offered = together[0]
        yield Device(
            name=physical.upper(),
            address=physical,
            node=offered.function.node,
            counts={offered.resource_class: len(together)},
            traits=offered.traits,
            functions=frozenset(each.function.address for each in together),
            form="VFS" if offered.function.physical else "",
        )
    if faults:
        raise BadConfiguration(faults)


def pci_notices(functions: Sequence[Function], rules: Iterable[PCIRule]) -> Iterator[str]:
    """A notice of each rule that names a device, and matches none."""
    for rule in rules:
        named = rule.functions_of or rule.address
        if (
            named
            and not set("*?") & set(named)
            and not any(
                rule.admits(function.address, function.device, function.physical)
                for function in functions
            )
        ):
            kind = "virtual functions of " if rule.functions_of else ""
            yield f"options.pci: the host has no {kind}{named} to offer"


def cards_of(functions: Iterable[Function]) -> dict[str, str]:
    """The card of each function, by address: the address of the physical one."""
    return {function.address: function.physical or function.address for function in functions}


def functions_given(
    functions: Iterable[Function], rules: Sequence[PCIRule]
) -> dict[str, tuple[str, str]]:
    """By the address of each function on offer, its provider's address and its class."""
    return {
        offered.function.address: (offered.provider, offered.resource_class)
        for offered in _given(functions, rules)
    }


def _given(functions: Iterable[Function], rules: Sequence[PCIRule]) -> Iterator[_Given]:
    for function in functions:
        admitting = (
            rule
            for rule in rules
            if rule.admits(function.address, function.device, function.physical)
        )
        if (rule := next(admitting, None)) is not None:
            resource_class = rule.resource_class or custom_name("PCI", *function.device)
            yield _Given(function, resource_class, _traits(function, rule))


def _by_provider(offered: _Given) -> tuple[str, str]:
    return offered.provider, offered.function.address


def _traits(function: Function, rule: PCIRule) -> frozenset[str]:
    traits: set[str] = set(rule.traits)
    if rule.physical_network:
        traits.add(custom_name("PHYSNET", rule.physical_network))
    if function.physical is not None and function.is_network:
        traits.add("HW_NIC_SRIOV")
    return frozenset(traits)


def _faults(physical: str, together: Sequence[_Given]) -> Iterable[str]:
    virtual = [
        offered.function.address for offered in together if offered.function.physical is not None
    ]
    if 0 < len(virtual) < len(together):
        yield (
            f"pci: {physical} and its virtual function {virtual[0]} are both offered; offer one "
            f"or the other"
        )
    elif len({(offered.resource_class, offered.traits) for offered in together}) > 1:
        yield (
            f"pci: the virtual functions of {physical} are offered as different things; give "
            f"them all the same resource class and traits"
        )
