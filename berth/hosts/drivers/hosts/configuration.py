# SPDX-License-Identifier: Apache-2.0
"""Reads what an operator says of a host.

Whatever is wrong is collected and told together, each fault in one sentence that names the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final, TypeVar
from uuid import UUID

from berth.hosts.drivers.hosts.devices import PCI_ADDRESS, libvirt_name
from berth.hosts.drivers.hosts.id_lists import read_id_list
from berth.hosts.drivers.hosts.names import trait_name
from berth.hosts.drivers.hosts.options import (
    SHARED_OUT,
    HostOptions,
    HugePages,
    MdevRule,
    Model,
    PCIRule,
    Placement,
)
from berth.hosts.errors import BadConfiguration
from berth.model import names
from berth.model.inventory import MAX_INT
from berth.model.standard import is_standard_class

#: What reads one value.
Read = Callable[[object], object]

_Options = TypeVar("_Options", bound=HostOptions)

#: No single-precision number is larger.
_RATIO_MAX: Final = 3.4e38


def read_options(
    driver: str, said: Mapping[str, object], own: Mapping[str, Read], make: type[_Options]
) -> _Options:
    """A driver's options as an operator wrote them.

    Args:
        driver: begins the sentence of each fault.
        own: reads the options that only this driver has.

    Raises:
        BadConfiguration: some of them cannot be meant; all of those are told.
    """
    options = _mapping(driver, {**_OPTIONS, **own}, make)(said)
    assert isinstance(options, make)
    if faults := [f"{driver}, {fault}" for fault in _contradictions(options)]:
        raise BadConfiguration(faults)
    return options


def _contradictions(options: HostOptions) -> Iterator[str]:
    both = (options.cpu_shared or frozenset()) & options.cpu_dedicated
    if both:
        yield f"cpu_shared and cpu_dedicated both name CPU {', '.join(map(str, sorted(both)))}"
    types = [rule.type for rule in options.mdev if not rule.parents]
    if len(types) > 1:
        yield f"mdev: of the types {', '.join(types)} all but one must name their parents"
    taken: dict[str, str] = {}
    for rule in options.mdev:
        for parent in sorted(rule.parents):
            if taken.setdefault(parent, rule.type) != rule.type:
                yield f"mdev: {parent} cannot be of both types {taken[parent]} and {rule.type}"


# --- Mappings and lists ---------------------------------------------------------------------------


class Wrong(ValueError):
    """What stands at a place is not what can stand there; the message says what can."""


def _mapping(what: str, known: Mapping[str, Read], make: Callable[..., object]) -> Read:
    """Reads a mapping into what `make` makes of its fields; `what` begins each fault's sentence."""

    def read(said: object) -> object:
        if not isinstance(said, Mapping):
            raise BadConfiguration([f"{what}: {said!r} must be a mapping"])
        faults: list[str] = []
        fields: dict[str, Any] = {}
        for name, value in said.items():
            if name not in known:
                faults.append(
                    f"{what} has no option {name!r}; there are {', '.join(sorted(known))}"
                )
                continue
            try:
                fields[name] = known[name](value)
            except Wrong as wrong:
                faults.append(f"{what}, {name}: {value!r} {wrong}")
            except BadConfiguration as inner:
                faults += inner.faults
        if not faults:
            try:
                return make(**fields)
            except Wrong as wrong:
                faults.append(f"{what}: {wrong}")
        raise BadConfiguration(faults)

    return read


def _list_of(what: str, known: Mapping[str, Read], make: Callable[..., object]) -> Read:
    """Reads a list of mappings; the faults name the place in it, from 1."""

    def read(said: object) -> tuple[object, ...]:
        if not isinstance(said, list | tuple):
            raise Wrong("must be a list")
        faults: list[str] = []
        made: list[object] = []
        for number, entry in enumerate(said, 1):
            try:
                made.append(_mapping(f"{what} {number}", known, make)(entry))
            except BadConfiguration as inner:
                faults += inner.faults
        if faults:
            raise BadConfiguration(faults)
        return tuple(made)

    return read


def _pci_rule(**fields: Any) -> PCIRule:
    if not fields.keys() & {"device", "address", "functions_of"}:
        raise Wrong("device, address or functions_of must say which devices are meant")
    return PCIRule(**fields)


def _mdev_rule(**fields: Any) -> MdevRule:
    if "type" not in fields:
        raise Wrong("type must say which type of mediated devices is meant")
    return MdevRule(**fields)


# --- Values ---------------------------------------------------------------------------------------


def text(value: object) -> str:
    """Text, not empty."""
    if not isinstance(value, str) or not value:
        raise Wrong("must be text; put it into quotes")
    return value


def switch(value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Wrong("must be true or false")
    return value


def path(value: object) -> Path:
    """A path from the root."""
    found = Path(text(value))
    if not found.is_absolute():
        raise Wrong("must be a path from /")
    return found


def device(value: object) -> str:
    """libvirt's name of a device, which may be given by its PCI address."""
    name = text(value).lower()
    return libvirt_name(name) if PCI_ADDRESS.fullmatch(name) else name


def by_uuid(read: Callable[[str], str]) -> Read:
    """A mapping of uuids to what is read of each."""

    def read_all(value: object) -> object:
        if not isinstance(value, Mapping):
            raise Wrong("must be a mapping of uuids")
        return {_uuid(key): read(text(inner)) for key, inner in value.items()}

    return read_all


def placements(value: object) -> Mapping[str, Placement]:
    """By consumer, the NUMA nodes that it is on."""
    if not isinstance(value, Mapping):
        raise Wrong("must be a mapping of consumers")
    return {_uuid(consumer): _placement(nodes) for consumer, nodes in value.items()}


def _uuid(value: object) -> str:
    name = text(value).lower()
    try:
        UUID(name)
    except ValueError:
        raise Wrong(f"has {value!r}, where the uuid of a consumer must stand") from None
    return name


def _disk(value: object) -> Path | None:
    return None if value is None or value is False else path(value)


def _whole(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_INT:
        raise Wrong("must be a whole number from 1")
    return value


def _one_of(kind: type[Enum]) -> Callable[[object], Enum]:
    def read(value: object) -> Enum:
        try:
            return kind(value)
        except ValueError:
            raise Wrong(f"must be one of {', '.join(one.value for one in kind)}") from None

    return read


def _cpus(value: object) -> frozenset[int]:
    try:
        ids = read_id_list(str(value) if type(value) is int else text(value))
    except ValueError:
        raise Wrong("must be a list of CPUs such as 0-3,8") from None
    if not ids:
        raise Wrong("names no CPU; leave it out where none is meant")
    return ids


def _pci_address(value: object) -> str:
    address = text(value).lower()
    if not PCI_ADDRESS.fullmatch(address):
        raise Wrong("must be a PCI address such as 0000:81:00.0")
    return address


def _pci_pattern(value: object) -> str:
    pattern = text(value).lower()
    if not re.fullmatch(r"[0-9a-f:.*?]+", pattern):
        raise Wrong("must be a PCI address such as 0000:81:00.0, or one with * and ? in it")
    return pattern


def _pci_device(value: object) -> tuple[str, str]:
    match = re.fullmatch(r"([0-9a-f]{4}):([0-9a-f]{4})", text(value).lower())
    if not match:
        raise Wrong("must be vendor and product such as 8086:1572")
    return match[1], match[2]


def _resource_class(value: object) -> str:
    name = text(value).upper()
    if is_standard_class(name) or names.is_custom_class_name(name):
        return name
    raise Wrong("must be a standard resource class, or one that begins with CUSTOM_")


def _texts(value: object) -> frozenset[str]:
    if not isinstance(value, list | tuple):
        raise Wrong("must be a list")
    return frozenset(text(one) for one in value)


def _traits(value: object) -> frozenset[str]:
    return frozenset(map(trait_name, _texts(value)))


def _parents(value: object) -> frozenset[str]:
    return frozenset(map(device, _texts(value)))


def _by_class(value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise Wrong("must be a mapping of resource classes")
    for name in value:
        if name not in SHARED_OUT:
            raise Wrong(f"has {name!r}; there are {', '.join(SHARED_OUT)}")
    return value


def _amounts(value: object) -> Mapping[str, int]:
    for name, amount in _by_class(value).items():
        if type(amount) is not int or not 0 <= amount <= MAX_INT:
            raise Wrong(f"has no whole number from 0 for {name}")
    return dict(_by_class(value))


def _ratios(value: object) -> Mapping[str, float]:
    for name, ratio in _by_class(value).items():
        is_number = isinstance(ratio, int | float) and not isinstance(ratio, bool)
        if not (is_number and 0 < ratio <= _RATIO_MAX):
            raise Wrong(f"has no number above 0 for {name}")
    return {name: float(ratio) for name, ratio in _by_class(value).items()}


def _placement(value: object) -> Placement:
    """A list of NUMA nodes, or a mapping of them to the consumer's CPUs on each."""
    pairs: list[tuple[object, object]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list | tuple):
        pairs = [(node, 1) for node in value]
    shares = {
        node: share
        for node, share in pairs
        if type(node) is int and node >= 0 and type(share) is int and share >= 1
    }
    if not shares or len(shares) != len(pairs):
        raise Wrong(
            f"has {value!r}, where a list of NUMA nodes must stand, or how many CPUs are on each"
        )
    return shares


_PCI: Final[Mapping[str, Read]] = {
    "device": _pci_device,
    "address": _pci_pattern,
    "functions_of": _pci_address,
    "resource_class": _resource_class,
    "traits": _traits,
    "physical_network": text,
}
_MDEV: Final[Mapping[str, Read]] = {
    "type": text,
    "parents": _parents,
    "resource_class": _resource_class,
    "traits": _traits,
    "instances_max": _whole,
}
_OPTIONS: Final[Mapping[str, Read]] = {
    "model": _one_of(Model),
    "cpu_shared": _cpus,
    "cpu_dedicated": _cpus,
    "huge_pages": _one_of(HugePages),
    "disk": _disk,
    "pci": _list_of("pci", _PCI, _pci_rule),
    "mdev": _list_of("mdev", _MDEV, _mdev_rule),
    "reserved": _amounts,
    "allocation_ratios": _ratios,
}
