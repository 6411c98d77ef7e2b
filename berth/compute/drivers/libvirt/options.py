# SPDX-License-Identifier: Apache-2.0
"""What an operator may say of a host with libvirt."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from berth.compute.drivers.libvirt.xml_documents import read_id_set
from berth.compute.errors import BadConfiguration
from berth.model import names
from berth.model.inventory import MAX_INT
from berth.model.standard import is_standard_class

#: Classes of which an operator may reserve a part, or give out more than there is.
SHARED_OUT: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")

_ADDRESS: Final = re.compile(r"(?P<domain>[0-9a-f]{4}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])")


class Model(Enum):
    """How the host is modelled."""

    #: CPUs and memory stand on the root.
    FLAT = "flat"
    #: CPUs and memory stand on one child for each NUMA node.
    NUMA = "numa"


@dataclass(frozen=True, slots=True)
class MdevRule:
    """Which type of mediated devices is offered, and of which devices."""

    type: str
    #: By libvirt's names; none named: all that no other rule names.
    parents: frozenset[str] = frozenset()
    resource_class: str = "VGPU"
    #: The most that one device offers; None: as many as can be made.
    instances_max: int | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """All that may be said of a host."""

    uri: str = "qemu:///system"
    model: Model = Model.FLAT
    #: CPUs that are given out as VCPU; None: all that are online, unless there are dedicated ones.
    cpu_shared: frozenset[int] | None = None
    #: CPUs that are given out as PCPU, one to a guest.
    cpu_dedicated: frozenset[int] = frozenset()
    #: A directory of the file system that is given out as DISK_GB; None: none is.
    disk: Path | None = Path("/var/lib/libvirt/images")
    mdev: tuple[MdevRule, ...] = ()
    #: By resource class. What is not said is left as the service has it.
    reserved: Mapping[str, int] = field(default_factory=dict)
    allocation_ratios: Mapping[str, float] = field(default_factory=dict)
    #: By the uuid of a migration, its instance's.
    migrations: Mapping[str, str] = field(default_factory=dict)
    #: By consumer, the device on which its vGPUs are, where the host cannot tell.
    assume: Mapping[str, str] = field(default_factory=dict)


def read_options(said: Mapping[str, object]) -> Options:
    """The options as an operator wrote them.

    Raises:
        BadConfiguration: some of them cannot be meant; all of those are told.
    """
    faults: list[str] = []
    values = _read(said, _OPTIONS, "The libvirt driver", faults)
    shared, dedicated = values.get("cpu_shared"), values.get("cpu_dedicated", frozenset())
    if shared and shared & dedicated:
        both = ", ".join(map(str, sorted(shared & dedicated)))
        faults.append(f"The libvirt driver: cpu_shared and cpu_dedicated both name CPU {both}")
    faults += _contradictions(values.get("mdev", ()))
    if faults:
        raise BadConfiguration(faults)
    return Options(**values)


def device_name(text: str) -> str:
    """libvirt's name of a device, which may be given by its PCI address."""
    return f"pci_{re.sub('[:.]', '_', text.lower())}" if _ADDRESS.fullmatch(text.lower()) else text


def _contradictions(rules: tuple[MdevRule, ...]) -> Iterator[str]:
    general = [rule.type for rule in rules if not rule.parents]
    if len(general) > 1:
        yield (
            f"The libvirt driver, mdev: of the types {', '.join(general)} all but one must name "
            f"their parents"
        )
    named = [parent for rule in rules for parent in sorted(rule.parents)]
    for parent in sorted({one for one in named if named.count(one) > 1}):
        yield f"The libvirt driver, mdev: several types name the parent {parent}"


# --- Values ---------------------------------------------------------------------------------------


class _Wrong(Exception):
    """What stands at a place is not what can stand there; the message says what can."""


#: What reads one value.
_Read = Callable[[Any], object]


def _read(said: object, known: Mapping[str, _Read], what: str, faults: list[str]) -> dict[str, Any]:
    """Read a mapping's values; what is wrong is added to `faults`."""
    if not isinstance(said, Mapping):
        faults.append(f"{what} is {said!r}, and must be a mapping")
        return {}
    values = {}
    for name, value in said.items():
        if name not in known:
            faults.append(f"{what} has no option {name!r}; there are {', '.join(sorted(known))}")
            continue
        try:
            values[name] = known[name](value)
        except _Wrong as wrong:
            faults.append(f"{what}, {name}: {value!r} {wrong}")
        except BadConfiguration as inner:
            faults += inner.faults
    return values


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise _Wrong("must be text")
    return value


def _model(value: Any) -> Model:
    try:
        return Model(value)
    except ValueError:
        raise _Wrong(f"must be one of {', '.join(one.value for one in Model)}") from None


def _cpus(value: Any) -> frozenset[int]:
    try:
        return read_id_set(str(value) if type(value) is int else _text(value))
    except ValueError:
        raise _Wrong("must be a list of CPUs such as 0-3,8") from None


def _disk(value: Any) -> Path | None:
    if value is None or value is False:
        return None
    path = Path(_text(value))
    if not path.is_absolute():
        raise _Wrong("must be a path from /, or false")
    return path


def _whole(value: Any, least: int = 1) -> int:
    if type(value) is not int or not least <= value <= MAX_INT:
        raise _Wrong(f"must be a whole number from {least}")
    return value


def _resource_class(value: Any) -> str:
    name = _text(value)
    if not is_standard_class(name) and not names.is_custom_class_name(name):
        raise _Wrong("must be a standard resource class, or one that begins with CUSTOM_")
    return name


def _parents(value: Any) -> frozenset[str]:
    if not isinstance(value, list | tuple) or not value:
        raise _Wrong("must be a list of devices, such as 0000:84:00.0 or pci_0000_84_00_0")
    return frozenset(device_name(_text(one)) for one in value)


def _by_class(read: Callable[[Any], Any]) -> _Read:
    def read_all(value: Any) -> object:
        if not isinstance(value, Mapping):
            raise _Wrong("must be a mapping of resource classes")
        if unknown := sorted(map(str, value.keys() - set(SHARED_OUT))):
            raise _Wrong(f"has {unknown[0]}; there are {', '.join(SHARED_OUT)}")
        return {name: read(amount) for name, amount in value.items()}

    return read_all


def _ratio(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 3.4e38:
        raise _Wrong("must have numbers above 0")
    return float(value)


def _texts(read: Callable[[str], str]) -> _Read:
    def read_all(value: Any) -> object:
        if not isinstance(value, Mapping):
            raise _Wrong("must be a mapping of uuids")
        return {_text(key).lower(): read(_text(inner)) for key, inner in value.items()}

    return read_all


def _mdev(value: Any) -> tuple[MdevRule, ...]:
    if not isinstance(value, list | tuple):
        raise _Wrong("must be a list")
    faults: list[str] = []
    rules = []
    for number, entry in enumerate(value, 1):
        what = f"The libvirt driver, mdev {number}"
        fields = _read(entry, _MDEV, what, faults)
        if "type" in fields:
            rules.append(MdevRule(**fields))
        elif isinstance(entry, Mapping) and "type" not in entry:
            faults.append(f"{what}: type must say which type of mediated devices is meant")
    if faults:
        raise BadConfiguration(faults)
    return tuple(rules)


_MDEV: Final[Mapping[str, _Read]] = {
    "type": _text,
    "parents": _parents,
    "resource_class": _resource_class,
    "instances_max": _whole,
}

_OPTIONS: Final[Mapping[str, _Read]] = {
    "uri": _text,
    "model": _model,
    "cpu_shared": _cpus,
    "cpu_dedicated": _cpus,
    "disk": _disk,
    "mdev": _mdev,
    "reserved": _by_class(lambda value: _whole(value, 0)),
    "allocation_ratios": _by_class(_ratio),
    "migrations": _texts(str.lower),
    "assume": _texts(device_name),
}
