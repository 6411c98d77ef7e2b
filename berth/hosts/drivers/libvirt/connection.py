# SPDX-License-Identifier: Apache-2.0
"""The host behind libvirt: asked over a connection that is opened again when it has broken."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import libvirt

from berth.hosts.drivers.hosts.mdev import MdevParent
from berth.hosts.drivers.hosts.pci import Function
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.machine import Machine, NodeDevices
from berth.hosts.drivers.libvirt.options import read_options
from berth.hosts.drivers.libvirt.xml_documents import (
    Capabilities,
    Guest,
    Mdev,
    read_capabilities,
    read_cpu_features,
    read_encryption_slots,
    read_guest,
    read_host_model,
    read_node_device,
)
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.topology import linked_nodes
from berth.hosts.errors import HostUnreadable

LOG = logging.getLogger(__name__)

Told = TypeVar("Told")

_GIB: Final = 1024**3

#: What libvirt says of what has gone, or of what it cannot tell of any host of this kind.
_ABSENT: Final = frozenset(
    {
        libvirt.VIR_ERR_NO_DOMAIN,
        libvirt.VIR_ERR_NO_NODE_DEVICE,
        libvirt.VIR_ERR_NO_SUPPORT,
        libvirt.VIR_ERR_OPERATION_UNSUPPORTED,
    }
)
#: What it says besides on a host without an emulator, or with a CPU that it does not know.
_NOT_FOR_GUESTS: Final = frozenset(
    {libvirt.VIR_ERR_CONFIG_UNSUPPORTED, libvirt.VIR_ERR_INVALID_ARG}
)


def make_driver(options: Mapping[str, object]) -> LibvirtDriver:
    """The driver with an operator's options; asked for by its name `libvirt`.

    Raises:
        BadConfiguration: the options cannot be meant.
    """
    read = read_options(options)
    return LibvirtDriver(LibvirtHost(read.uri), read)


class LibvirtHost:
    """A host, asked through libvirt."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        #: The library has no types.
        self._connection: Any = None

    def machine(self) -> Machine:
        """What the host has."""
        return self._ask(_machine)

    def devices(self) -> NodeDevices:
        """The devices on the PCI bus, and those that have to do with mediated ones."""
        return self._ask(_devices)

    def guests(self) -> list[Guest]:
        """All domains; one that goes while they are listed is left out."""
        return self._ask(_guests)

    def disk_gib(self, directory: Path) -> int:
        """How large the file system of a directory is, in whole GiB."""
        try:
            found = os.statvfs(directory)
        except OSError as error:
            raise HostUnreadable(
                f"The libvirt driver, disk: {directory} cannot be looked at: {error.strerror}"
            ) from error
        return found.f_frsize * found.f_blocks // _GIB

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # One that has broken may refuse even that.
            with suppress(libvirt.libvirtError):
                connection.close()

    def _ask(self, question: Callable[[Any], Told]) -> Told:
        try:
            if self._connection is None or not self._connection.isAlive():
                self.close()
                # What goes wrong is raised, and said by whoever it concerns: not on stderr too.
                libvirt.registerErrorHandler(lambda context, error: None, None)
                self._connection = libvirt.open(self._uri)
            return question(self._connection)
        except (libvirt.libvirtError, ValueError) as error:
            # ValueError: a document that is no such document.
            self.close()
            raise HostUnreadable(f"libvirt at {self._uri}: {error}") from error


def _machine(connection: Any) -> Machine:
    capabilities = read_capabilities(connection.getCapabilities())
    _, online, _ = connection.getCPUMap()
    of_guests = _of_guests(connection.getDomainCapabilities)
    present = frozenset(range(len(online)))
    untold = present.difference(*(cell.cpus for cell in capabilities.cells))
    return Machine(
        capabilities,
        connection.getInfo()[1],
        present,
        frozenset(cpu for cpu, is_online in enumerate(online) if is_online),
        _cpu_features(connection, capabilities, of_guests),
        {} if of_guests is None else read_encryption_slots(of_guests),
        linked_nodes(HostFiles(Path("/")), untold),
    )


def _cpu_features(
    connection: Any, capabilities: Capabilities, of_guests: str | None
) -> frozenset[str]:
    """What the CPU model that guests get by default can do, or else the host's."""
    model = None if of_guests is None else read_host_model(of_guests)
    cpu = model or capabilities.cpu
    if cpu is None:
        return frozenset()
    # Features that are part of the model are named only when asked for.
    whole = _of_guests(
        lambda: connection.baselineCPU([cpu], libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES)
    )
    return read_cpu_features(whole or cpu)


def _devices(connection: Any) -> NodeDevices:
    parents, mdevs, functions = [], [], []
    for device in connection.listAllDevices(
        libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES
        | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV
        | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV
    ):
        for one in _read(_listed, _where_there(device.XMLDesc)) or ():
            match one:
                case MdevParent():
                    parents.append(one)
                case Mdev() if _is_made(device):
                    mdevs.append(one)
                case Function():
                    functions.append(one)
    return NodeDevices(parents, mdevs, functions)


def _is_made(device: Any) -> bool:
    """Whether a mediated device is there, and not only defined: then it takes nothing up.

    A libvirt that does not tell (before 7.8) is taken at its list.
    """
    return _where_there(device.isActive) in (None, 1)


def _listed(text: str) -> list[MdevParent | Mdev | Function]:
    return list(read_node_device(text))


def _guests(connection: Any) -> list[Guest]:
    guests = []
    for domain in connection.listAllDomains():
        read = partial(read_guest, is_running=bool(_where_there(domain.isActive)))
        if (guest := _read(read, _where_there(domain.XMLDesc))) is not None:
            guests.append(guest)
    return guests


def _read(reader: Callable[[str], Told], text: str | None) -> Told | None:
    """What one document says; an odd one is left out, so that it does not hide all others."""
    try:
        return None if text is None else reader(text)
    except (HostUnreadable, ValueError) as error:
        LOG.warning("One of libvirt's documents is left out: %s: %.200s", error, text)
        return None


def _where_there(question: Callable[[], Told]) -> Told | None:
    """An answer, or None where libvirt has none: of what has gone, or what it cannot tell here.

    Whatever else goes wrong says nothing of the host: a connection that breaks, or an answer that
    is late, must not look like a device that is not there.
    """
    try:
        return question()
    except libvirt.libvirtError as error:
        if error.get_error_code() not in _ABSENT:
            raise
        LOG.debug("libvirt does not tell: %s", error)
        return None


def _of_guests(question: Callable[[], Told]) -> Told | None:
    """An answer on what guests get, or None where libvirt can give none on this host.

    Of a CPU that it does not know it says so with an internal error; but whatever its knowledge of
    CPUs complains of is worked out without asking anybody, and says the same the next time.
    """
    try:
        return _where_there(question)
    except libvirt.libvirtError as error:
        is_of_cpus = error.get_error_domain() == libvirt.VIR_FROM_CPU
        if not is_of_cpus and error.get_error_code() not in _NOT_FOR_GUESTS:
            raise
        LOG.debug("libvirt does not tell: %s", error)
        return None
