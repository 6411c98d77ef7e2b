# SPDX-License-Identifier: Apache-2.0
"""The devices of a host that are on offer: PCI functions, mediated devices, encrypted memory.

A device is a provider of its own. The virtual functions of one physical function are counted
together, on a provider that is named after the physical one.

Each parent of mediated devices offers one type. Existing devices of the type and those that could
still be created are counted together, so that creating one changes nothing.

Guests with encrypted memory take a slot of the processors. Each kind has its own slots, and is a
device here.
Source: spec/compute-side.md 4.4 to 4.6, and 5.1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby
from typing import Final

from berth.hosts.drivers.host_model.names import STANDARD, custom_name
from berth.hosts.drivers.host_model.options import HostOptions, MdevRule, PCIRule
from berth.hosts.errors import BadConfiguration

#: The first digits of the PCI class of network devices, as the kernel and libvirt write it.
NETWORK_CLASS: Final = "0x02"

#: Begins the trait that says what a device is divided into.
FORM_TRAIT: Final = "CUSTOM_DIVIDED_INTO_"


@dataclass(frozen=True, slots=True)
class Device:
    """One device, or the virtual functions of one."""

    #: The name of its provider, without the node's name.
    name: str
    #: Its PCI address; None if it is not a PCI device.
    address: str | None
    #: The nearest NUMA node, if the host knows it.
    node: int | None
    #: The number by resource class, each at least 1.
    counts: Mapping[str, int]
    traits: frozenset[str]
    #: The most that one consumer may have; None: all.
    unit_max: int | None = None
    #: The address of the physical function, if `address` is that of a virtual one.
    physical: str | None = None
    #: The addresses of the virtual functions that it stands for, if it stands for some.
    functions: frozenset[str] = frozenset()
    #: What it is divided into: VFS, or a type of mediated devices; empty: nothing, or slices.
    form: str = ""

    @property
    def card(self) -> str:
        """What is one thing with all its functions: the address of the physical one."""
        return self.physical or self.address or self.name

    @property
    def traits_with_form(self) -> frozenset[str]:
        """Its traits, with the one that says what it is divided into."""
        return self.traits | ({custom_name(FORM_TRAIT, self.form)} if self.form else set())

    @property
    def is_mediated(self) -> bool:
        """Whether it is divided into mediated devices, or into vGPUs of the same types."""
        return bool(self.form and not self.functions)


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


@dataclass(frozen=True, slots=True)
class DeviceSources:
    """Where a host's devices are found."""

    #: All PCI functions, on offer or not.
    functions: Sequence[Function]
    #: All devices that can have mediated ones.
    parents: Sequence[MdevParent]
    #: The number of guests with encrypted memory, by the kernel's name of the kind; None: unknown.
    encryption_slots: Mapping[str, int | None]
    #: What would tell an unknown number, as part of a sentence.
    slots_told_by: str

    @property
    def cards(self) -> dict[str, str]:
        """The card of each function, by address: the address of the physical one."""
        return {each.address: each.physical or each.address for each in self.functions}

    def on_offer(
        self,
        options: HostOptions,
        find_gpus: Callable[[Collection[str]], Iterable[Device]],
    ) -> list[Device]:
        """The devices that the rules of the options select, and further GPUs.

        Args:
            find_gpus: finds GPUs that are whole, or divided into slices; called with the addresses
                of the devices that are divided otherwise, or offered already.

        Raises:
            BadConfiguration: a rule selects devices that cannot be offered together, or lacks a
                limit.
        """
        passed = list(_pci_devices(self.functions, options.pci))
        cut = _cut_up(self.parents, options.mdev)
        gpus = find_gpus(cut | {device.card for device in passed})
        whole = (gpu for gpu in gpus if gpu.address not in cut)
        mediated = _mdev_devices(self.parents, options.mdev)
        slots = _encryption_devices(self.encryption_slots)
        return list(_each_once(passed, mediated, whole, slots))

    def notices(self, options: HostOptions) -> Iterator[str]:
        """A sentence for each device that is not on offer, and each rule without a device."""
        yield from _unknown_encryption(self.encryption_slots, self.slots_told_by)
        yield from _pci_notices(self.functions, options.pci)
        yield from _mdev_notices(self.parents, options.mdev)


def _each_once(*finds: Iterable[Device]) -> Iterator[Device]:
    """Each device once, from the first source that has it.

    A physical function is the same device as each of its virtual ones.
    """
    given: dict[str, set[str]] = {}
    for devices in finds:
        for device in list(devices):
            functions = device.functions or {device.address or device.name}
            others = given.setdefault(device.card, set())
            if not others or not (functions & others or device.card in functions | others):
                others |= functions
                yield device


# --- PCI functions --------------------------------------------------------------------------------


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


def _pci_devices(functions: Iterable[Function], rules: Sequence[PCIRule]) -> Iterator[Device]:
    """The devices that the rules select, each by the first rule that does.

    Raises:
        BadConfiguration: a physical function is selected beside its own virtual ones, or the
            virtual functions of one device are offered as different things.
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
        raise BadConfiguration(*faults)


def _pci_notices(functions: Sequence[Function], rules: Iterable[PCIRule]) -> Iterator[str]:
    """A notice of each rule that names a device, and matches none."""
    for rule in rules:
        named = rule.functions_of or rule.address
        is_pattern = bool(named and set("*?") & set(named))
        if named and not is_pattern and not any(_admits(rule, each) for each in functions):
            kind = "virtual functions of " if rule.functions_of else ""
            yield f"options.pci: the host has no {kind}{named} to offer"


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
        admitting = (rule for rule in rules if _admits(rule, function))
        if (rule := next(admitting, None)) is not None:
            resource_class = rule.resource_class or custom_name("PCI", *function.device)
            yield _Given(function, resource_class, _traits(function, rule))


def _admits(rule: PCIRule, function: Function) -> bool:
    return (
        (rule.device is None or rule.device == function.device)
        and (rule.address is None or fnmatchcase(function.address, rule.address))
        and (rule.functions_of is None or rule.functions_of == function.physical)
    )


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


# --- Mediated devices -----------------------------------------------------------------------------


def _mdev_devices(parents: Iterable[MdevParent], rules: Sequence[MdevRule]) -> Iterator[Device]:
    """The parents that have, or could create, mediated devices of their configured type.

    A rule's limit applies to a device with all its virtual functions; existing mediated devices
    always count, and first.

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
                f"mdev, {rule.type}: {parent.whole} does not say how many fit at once; set "
                f"instances_max"
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


def _mdev_notices(parents: Sequence[MdevParent], rules: Sequence[MdevRule]) -> Iterator[str]:
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


def _cut_up(parents: Iterable[MdevParent], rules: Sequence[MdevRule]) -> frozenset[str]:
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


# --- Encrypted memory -----------------------------------------------------------------------------

#: The provider name and the trait of each kind, by the kernel's name.
_KINDS: Final = {
    "sev": ("amd_sev", "HW_CPU_X86_AMD_SEV"),
    "sev_es": ("amd_sev_es", "HW_CPU_X86_AMD_SEV_ES"),
    "tdx": ("intel_tdx", "HW_CPU_X86_INTEL_TDX"),
}


def _unknown_encryption(slots: Mapping[str, int | None], told_by: str) -> Iterator[str]:
    """A notice of the kinds that are supported for an unknown number of guests."""
    kinds = [kind.upper().replace("_", "-") for kind, count in slots.items() if count is None]
    if kinds:
        yield (
            f"The host supports {' and '.join(kinds)} for an unknown number of guests, so none is "
            f"offered: {told_by}"
        )


def _encryption_devices(slots: Mapping[str, int | None]) -> Iterator[Device]:
    """The providers of the kinds that have slots."""
    for kind, (name, trait) in _KINDS.items():
        if count := slots.get(kind):
            yield Device(
                name=name,
                address=None,
                node=None,
                counts={"MEM_ENCRYPTION_CONTEXT": count},
                traits=frozenset({trait} & STANDARD),
                unit_max=1,
            )
