# SPDX-License-Identifier: Apache-2.0
"""The options of the drivers of machines, as an operator writes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Annotated, ClassVar, Final, Self

from msgspec import Meta, Struct

from berth.hosts.drivers.host_model.names import (
    PCI_ADDRESS,
    libvirt_name,
    read_id_list,
    trait_name,
)
from berth.hosts.drivers.kept_settings import KEEP_DAYS
from berth.hosts.errors import BadConfiguration
from berth.hosts.fields import AbsolutePath, Count, CountOrZero, Ratio, Text, UUIDText
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

    #: The name of the driver.
    driver: ClassVar[str]

    @classmethod
    def read(cls, options: Mapping[str, object]) -> Self:
        """Read a driver's options.

        Raises:
            BadConfiguration: with every fault.
        """
        if options.get("disk") is False:
            # `disk: false` reads better than `disk: null`.
            options = {**options, "disk": None}
        checked = convert(options, cls, f"driver {cls.driver}", at="options")
        if faults := list(_contradictions(checked)):
            raise BadConfiguration(*(f"driver {cls.driver}, options.{fault}" for fault in faults))
        return checked


class Placements(dict[str, Placement]):
    """The NUMA nodes of consumers: a list, or the consumer's CPUs on each."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: they are written otherwise.
        """
        if not isinstance(value, Mapping):
            raise ValueError("expected a mapping of consumers")
        return cls({_consumer_uuid(key): _placement(key, nodes) for key, nodes in value.items()})


class LinuxOptions(HostOptions, frozen=True):
    """The options of the driver `linux`."""

    driver = "linux"

    root: AbsolutePath = AbsolutePath("/")
    disk: AbsolutePath | None = AbsolutePath("/")
    nvml: bool = True
    placements: Placements = Placements()


class Migrations(dict[str, str]):
    """The instance of each migration, by uuid."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is not a mapping of uuids to uuids.
        """
        return cls(_by_consumer(value, _consumer_uuid))


class AssumedDevices(dict[str, str]):
    """The device on which a consumer's vGPUs are, by the consumer's uuid."""

    @classmethod
    def parse(cls, value: object) -> Self:
        """Read them.

        Raises:
            ValueError: it is not a mapping of uuids to devices.
        """
        return cls(_by_consumer(value, DeviceName.parse))


class LibvirtOptions(HostOptions, frozen=True):
    """The options of the driver `libvirt`."""

    driver = "libvirt"

    uri: Text = "qemu:///system"
    disk: AbsolutePath | None = AbsolutePath("/var/lib/libvirt/images")
    migrations: Migrations = Migrations()
    #: Used only where the host cannot tell.
    assume: AssumedDevices = AssumedDevices()


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


def _placement(consumer: object, value: object) -> Placement:
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
        raise ValueError(
            f"{consumer} needs a list of NUMA nodes, or a mapping of them to numbers of CPUs, "
            f"not {value!r}"
        )
    return shares


def _by_consumer(value: object, read: Callable[[object], str]) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("expected a mapping of uuids")
    return {_consumer_uuid(key): read(inner) for key, inner in value.items()}


def _consumer_uuid(value: object) -> str:
    try:
        return UUIDText.parse(value)
    except ValueError:
        raise ValueError(f"{value!r} is not the uuid of a consumer") from None
