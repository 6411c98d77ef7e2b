# SPDX-License-Identifier: Apache-2.0
"""A host behind libvirt, over a connection that is reopened when it breaks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import libvirt

from berth.hosts.drivers.host_model.devices import Function, MdevParent
from berth.hosts.drivers.host_model.options import LibvirtOptions
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.host import Machine, NodeDevices
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
from berth.hosts.drivers.linux.cpus import linked_nodes
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.host import device_nodes, measure
from berth.hosts.errors import HostUnreadable

LOG = logging.getLogger(__name__)

Told = TypeVar("Told")

_GIB: Final = 1024**3

#: libvirt's error codes for objects that disappeared, or that hosts of this kind do not have.
_ABSENT: Final = frozenset(
    {
        libvirt.VIR_ERR_NO_DOMAIN,
        libvirt.VIR_ERR_NO_NODE_DEVICE,
        libvirt.VIR_ERR_NO_SUPPORT,
        libvirt.VIR_ERR_OPERATION_UNSUPPORTED,
    }
)
#: Further codes, on a host without an emulator, or with an unknown CPU.
_NOT_FOR_GUESTS: Final = frozenset(
    {libvirt.VIR_ERR_CONFIG_UNSUPPORTED, libvirt.VIR_ERR_INVALID_ARG}
)


def make_driver(options: Mapping[str, object]) -> LibvirtDriver:
    """Create the driver, which is registered as `libvirt`.

    Raises:
        BadConfiguration: with every fault of the options.
    """
    read = LibvirtOptions.read(options)
    return LibvirtDriver(LibvirtHost(read.uri), read)


class LibvirtHost:
    """A host, examined through libvirt."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        #: The library has no type hints.
        self._connection: Any = None
        #: What was logged, so that it is not logged in every pass.
        self._said: set[str] = set()

    def machine(self) -> Machine:
        """Read what the host has."""
        return self._ask(self._machine)

    def devices(self) -> NodeDevices:
        """Read the devices on the PCI bus, and those related to mediated devices."""
        return self._ask(self._devices)

    def guests(self) -> list[Guest]:
        """Read all domains; one that disappears meanwhile is left out."""
        return self._ask(self._guests)

    def disk_gib(self, directory: Path) -> int:
        """The size of a directory's file system, in whole GiB."""
        try:
            return measure(directory).size // _GIB
        except OSError as error:
            raise HostUnreadable(
                f"driver libvirt, options.disk: cannot read {directory}: {error.strerror}"
            ) from error

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # A broken connection may refuse even that.
            with suppress(libvirt.libvirtError):
                connection.close()

    def _tell(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            LOG.warning("%s", sentence)

    def _ask(self, question: Callable[[Any], Told]) -> Told:
        try:
            if self._connection is None or not self._connection.isAlive():
                self.close()
                # Errors are raised, and reported by whoever they concern; libvirt must not print
                # them to stderr too.
                libvirt.registerErrorHandler(lambda context, error: None, None)
                self._connection = libvirt.open(self._uri)
            return question(self._connection)
        except (libvirt.libvirtError, ValueError) as error:
            # ValueError: a document is malformed.
            self.close()
            raise HostUnreadable(f"libvirt at {self._uri}: {error}") from error

    def _machine(self, connection: Any) -> Machine:
        capabilities = read_capabilities(connection.getCapabilities())
        _, online, _ = connection.getCPUMap()
        of_guests = self._of_guests(connection.getDomainCapabilities)
        present = frozenset(range(len(online)))
        without_cell = present.difference(*(cell.cpus for cell in capabilities.cells))
        return Machine(
            capabilities,
            connection.getInfo()[1],
            present,
            frozenset(cpu for cpu, is_online in enumerate(online) if is_online),
            self._cpu_features(connection, capabilities, of_guests),
            {} if of_guests is None else read_encryption_slots(of_guests),
            linked_nodes(HostFiles(Path("/")), without_cell),
            device_nodes(HostFiles(Path("/"))),
        )

    def _cpu_features(
        self, connection: Any, capabilities: Capabilities, of_guests: str | None
    ) -> frozenset[str]:
        """The features of the CPU model that guests get by default, or else the host's."""
        model = None if of_guests is None else read_host_model(of_guests)
        cpu = model or capabilities.cpu
        if cpu is None:
            self._tell("libvirt does not know the host's CPU, so no traits of CPUs are reported")
            return frozenset()
        # Features that are part of the model are listed only on request.
        whole = self._of_guests(
            lambda: connection.baselineCPU([cpu], libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES)
        )
        return read_cpu_features(whole or cpu)

    def _devices(self, connection: Any) -> NodeDevices:
        parents, mdevs, functions = [], [], []
        for device in connection.listAllDevices(
            libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV_TYPES
            | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_MDEV
            | libvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_PCI_DEV
        ):
            text = _where_there(device.XMLDesc)
            for document in self._read(lambda text: [*read_node_device(text)], text) or ():
                match document:
                    case MdevParent():
                        parents.append(document)
                    case Mdev() if _is_made(device):
                        mdevs.append(document)
                    case Function():
                        functions.append(document)
        return NodeDevices(parents, mdevs, functions)

    def _guests(self, connection: Any) -> list[Guest]:
        guests = []
        for domain in connection.listAllDomains():
            read = partial(read_guest, is_running=bool(_where_there(domain.isActive)))
            if (guest := self._read(read, _where_there(domain.XMLDesc))) is not None:
                guests.append(guest)
        return guests

    def _read(self, reader: Callable[[str], Told], text: str | None) -> Told | None:
        """Read one document; skip a malformed one, so that it does not hide the others."""
        try:
            return None if text is None else reader(text)
        except (HostUnreadable, ValueError) as error:
            self._tell(f"Skipping one of libvirt's documents: {error}: {text:.200}")
            return None

    def _of_guests(self, question: Callable[[], Told]) -> Told | None:
        """Call libvirt about what guests get; return None if it cannot say on this host.

        libvirt reports an unknown CPU as an internal error. Errors of its CPU driver do not depend
        on the hypervisor, and are the same the next time.
        """
        try:
            return question()
        except libvirt.libvirtError as error:
            is_of_cpus = error.get_error_domain() == libvirt.VIR_FROM_CPU
            if not is_of_cpus and error.get_error_code() not in _ABSENT | _NOT_FOR_GUESTS:
                raise
            self._tell(
                f"CPU features and encrypted memory may be missing; libvirt does not say: {error}"
            )
            return None


def _is_made(device: Any) -> bool:
    """Whether a mediated device exists, and is not merely defined, which takes up nothing.

    Before libvirt 7.8, every listed device exists.
    """
    return _where_there(device.isActive) in (None, 1)


def _where_there(question: Callable[[], Told]) -> Told | None:
    """Call libvirt; return None if the object disappeared, or does not exist on this kind of host.

    Any other error says nothing about the host: a broken connection or a late reply must not look
    like a missing device.
    """
    try:
        return question()
    except libvirt.libvirtError as error:
        if error.get_error_code() not in _ABSENT:
            raise
        LOG.debug("libvirt does not know: %s", error)
        return None
