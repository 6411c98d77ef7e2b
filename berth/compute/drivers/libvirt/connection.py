# SPDX-License-Identifier: Apache-2.0
"""The host behind libvirt: asked over a connection that is opened again when it has broken."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import libvirt

from berth.compute.drivers.hosts.mdev import MdevParent
from berth.compute.drivers.hosts.pci import Function
from berth.compute.drivers.libvirt.driver import LibvirtDriver
from berth.compute.drivers.libvirt.machine import Machine, NodeDevices
from berth.compute.drivers.libvirt.options import read_options
from berth.compute.drivers.libvirt.xml_documents import (
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
from berth.compute.errors import HostUnreadable

LOG = logging.getLogger(__name__)

Told = TypeVar("Told")

_GIB: Final = 1024**3


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
            _quietly(connection.close)

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
    of_guests = _quietly(connection.getDomainCapabilities)
    return Machine(
        capabilities,
        connection.getInfo()[1],
        frozenset(range(len(online))),
        frozenset(cpu for cpu, is_online in enumerate(online) if is_online),
        _cpu_features(connection, capabilities, of_guests),
        {} if of_guests is None else read_encryption_slots(of_guests),
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
    whole = _quietly(
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
        for one in _read(_listed, _quietly(device.XMLDesc)) or ():
            match one:
                case MdevParent():
                    parents.append(one)
                case Mdev():
                    mdevs.append(one)
                case Function():
                    functions.append(one)
    return NodeDevices(parents, mdevs, functions)


def _listed(text: str) -> list[MdevParent | Mdev | Function]:
    return list(read_node_device(text))


def _guests(connection: Any) -> list[Guest]:
    guests = []
    for domain in connection.listAllDomains():
        read = partial(read_guest, is_running=bool(_quietly(domain.isActive)))
        if (guest := _read(read, _quietly(domain.XMLDesc))) is not None:
            guests.append(guest)
    return guests


def _read(reader: Callable[[str], Told], text: str | None) -> Told | None:
    """What one document says; an odd one is left out, so that it does not hide all others."""
    try:
        return None if text is None else reader(text)
    except (HostUnreadable, ValueError) as error:
        LOG.warning("One of libvirt's documents is left out: %s: %.200s", error, text)
        return None


def _quietly(question: Callable[[], Told]) -> Told | None:
    """An answer, or None where libvirt has none: of something that has gone, or not supported."""
    try:
        return question()
    except libvirt.libvirtError as error:
        LOG.debug("libvirt does not answer: %s", error)
        return None
