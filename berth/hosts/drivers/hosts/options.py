# SPDX-License-Identifier: Apache-2.0
"""The options that every driver of a machine takes, as an operator writes them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated, Final, Self, TypeVar
from uuid import UUID

from msgspec import Meta, Struct

from berth.hosts.drivers.hosts.devices import PCI_ADDRESS, libvirt_name
from berth.hosts.drivers.hosts.id_lists import read_id_list
from berth.hosts.drivers.hosts.names import trait_name
from berth.hosts.drivers.kept import KEEP_DAYS
from berth.hosts.errors import BadConfiguration
from berth.hosts.fields import AbsolutePath, Count, CountOrZero, Ratio, Text
from berth.hosts.validation import convert
from berth.model import names
from berth.model.standard import is_standard_class

#: By NUMA node, a consumer's share on it: the number of its CPUs there, or 1 for each node.
Placement = Mapping[int, int]

#: Classes of which an operator may reserve a part, or overcommit.
SHARED_CLASSES: Final = ("VCPU", "PCPU", "MEMORY_MB", "DISK_GB")

SharedClass = Annotated[
    str,
    Meta(
        pattern=rf"^({'|'.join(SHARED_CLASSES)})\Z",
        description=f"one of {', '.join(SHARED_CLASSES)}",
    ),
]

_Options = TypeVar("_Options", bound="HostOptions")


class Model(Enum):
    """How the host is modelled."""

    #: CPUs and memory are on the root.
    FLAT = "flat"
    #: CPUs and memory are on one child for each NUMA node.
    NUMA = "numa"


class HugePages(Enum):
    """Where the memory in huge pages is counted."""

    #: With all other memory.
    MEMORY = "memory"
    #: On a provider for each page size, apart from the other memory.
    PROVIDERS = "providers"


class CPUSet(frozenset[int]):
    """CPUs, written as the kernel writes them: `0-3,8`."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is not a list of CPUs, or an empty one.
        """
        try:
            ids = read_id_list(str(value) if type(value) is int else _text(value))
        except ValueError:
            raise ValueError("expected a list of CPUs such as 0-3,8") from None
        if not ids:
            raise ValueError("expected at least one CPU, or no such option")
        return cls(ids)


class PCIAddress(str):
    """The address of a PCI device, in lower case."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not the address of a PCI device.
        """
        address = _text(value).lower()
        if not PCI_ADDRESS.fullmatch(address):
            raise ValueError("expected a PCI address such as 0000:81:00.0")
        return cls(address)


class PCIPattern(str):
    """The address of a PCI device, in which `*` and `?` stand for other characters."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: no PCI device can have such an address.
        """
        pattern = _text(value).lower()
        if not re.fullmatch(r"[0-9a-f:.*?]+", pattern):
            raise ValueError(
                "expected a PCI address such as 0000:81:00.0, in which * and ? are wildcards"
            )
        return cls(pattern)


class VendorProduct(tuple[str, str]):
    """A vendor and a product, each four hexadecimal digits in lower case."""

    __slots__ = ()

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is not a vendor and a product.
        """
        match = re.fullmatch(r"([0-9a-f]{4}):([0-9a-f]{4})", _text(value).lower())
        if not match:
            raise ValueError("expected vendor and product such as 8086:1572")
        return cls((match[1], match[2]))


class AnyClassName(str):
    """A resource class, written in whatever case."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: there can be no such class.
        """
        name = _text(value).upper()
        if not (is_standard_class(name) or names.is_custom_class_name(name)):
            raise ValueError("expected a standard resource class, or one that begins with CUSTOM_")
        return cls(name)


class AnyTraitName(str):
    """A trait: a standard one in whatever case, else a custom one."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not text.
        """
        return cls(trait_name(_text(value)))


class DeviceName(str):
    """libvirt's name of a device, which may be given by its PCI address."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read one.

        Raises:
            ValueError: it is not text.
        """
        name = _text(value).lower()
        return cls(libvirt_name(name) if PCI_ADDRESS.fullmatch(name) else name)


class PCIRule(Struct, frozen=True, forbid_unknown_fields=True):
    """PCI devices to offer: those that match all of `device`, `address` and `functions_of`."""

    device: VendorProduct | None = None
    address: PCIPattern | None = None
    #: The address of the physical function whose virtual functions are meant.
    functions_of: PCIAddress | None = None
    #: None: CUSTOM_PCI_ with vendor and product.
    resource_class: AnyClassName | None = None
    traits: frozenset[AnyTraitName] = frozenset()
    physical_network: Text | None = None

    def __post_init__(self) -> None:
        """Refuse a rule that matches every device.

        Raises:
            ValueError: it does.
        """
        if not (self.device or self.address or self.functions_of):
            raise ValueError("needs device, address or functions_of, to select devices")

    def admits(self, address: str, device: tuple[str, str], physical: str | None) -> bool:
        """Whether a device matches; `physical` is the function that it is a virtual one of."""
        return (
            (self.device is None or self.device == device)
            and (self.address is None or fnmatch.fnmatchcase(address, self.address))
            and (self.functions_of is None or self.functions_of == physical)
        )


class MdevRule(Struct, frozen=True, forbid_unknown_fields=True):
    """A type of mediated devices to offer, and the devices that create them."""

    type: Text
    #: By libvirt's names; none: all that no other rule names.
    parents: frozenset[DeviceName] = frozenset()
    resource_class: AnyClassName = AnyClassName("VGPU")
    traits: frozenset[AnyTraitName] = frozenset()
    #: The most that one device offers; None: as many as it can create.
    instances_max: Count | None = None


class HostOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The options that every driver of a machine takes."""

    model: Model = Model.FLAT
    #: CPUs offered as VCPU; None: all that are online, unless there are dedicated ones.
    cpu_shared: CPUSet | None = None
    #: CPUs offered as PCPU, each to one consumer.
    cpu_dedicated: CPUSet = CPUSet()
    huge_pages: HugePages = HugePages.MEMORY
    #: A directory of the file system that is offered as DISK_GB; None: none is.
    disk: AbsolutePath | None = None
    pci: tuple[PCIRule, ...] = ()
    mdev: tuple[MdevRule, ...] = ()
    #: Of the whole host. Classes that are not named are left as the service has them.
    reserved: dict[SharedClass, CountOrZero] = {}
    allocation_ratios: dict[SharedClass, Ratio] = {}
    #: How long what was set on a provider is kept while its device is away.
    keep_days: CountOrZero = KEEP_DAYS


def read_options(driver: str, options: Mapping[str, object], kind: type[_Options]) -> _Options:
    """Read a driver's options.

    Args:
        driver: the driver's name, for messages.

    Raises:
        BadConfiguration: with every fault.
    """
    if options.get("disk") is False:
        # `disk: false` reads better than `disk: null`.
        options = {**options, "disk": None}
    checked = convert(options, kind, f"driver {driver}", at="options")
    if faults := list(_contradictions(checked)):
        raise BadConfiguration([f"driver {driver}, options.{fault}" for fault in faults])
    return checked


def consumer_uuid(value: object) -> str:
    """The UUID of a consumer, in lower case.

    Raises:
        ValueError: it is not a UUID.
    """
    name = _text(value).lower()
    try:
        UUID(name)
    except ValueError:
        raise ValueError(f"{value!r} is not the uuid of a consumer") from None
    return name


def _contradictions(options: HostOptions) -> Iterator[str]:
    both = (options.cpu_shared or frozenset()) & options.cpu_dedicated
    if both:
        yield f"cpu_shared: CPU {', '.join(map(str, sorted(both)))} is in cpu_dedicated too"
    types = [rule.type for rule in options.mdev if not rule.parents]
    if len(types) > 1:
        yield f"mdev: of the types {', '.join(types)}, only one may leave out its parents"
    type_of: dict[str, str] = {}
    for rule in options.mdev:
        for parent in sorted(rule.parents):
            if type_of.setdefault(parent, rule.type) != rule.type:
                yield f"mdev: {parent} cannot be of both types {type_of[parent]} and {rule.type}"


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("expected text; put it in quotes")
    return value
