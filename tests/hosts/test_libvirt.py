# SPDX-License-Identifier: Apache-2.0
"""A host whose libvirt connection breaks, is slow, or cannot answer: what counts as gone.

The objects of libvirt's binding are replaced; its exceptions are real.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from berth.hosts.drivers import load_driver
from berth.hosts.drivers.host_model.options import LibvirtOptions
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.xml_documents import (
    read_guest,
)
from berth.hosts.errors import HostUnreadable
from tests.hosts.libvirt_hosts import RECORDED, domain_xml, gpu_xml, mdev_xml
from tests.hosts.linux_hosts import empty_tree
from tests.hosts.stage import consumer_uuid
from tests.worlds import provider_uuid

if TYPE_CHECKING:
    from berth.hosts.drivers.libvirt.connection import LibvirtHost

libvirt = pytest.importorskip("libvirt")

CAPABILITIES = (RECORDED / "two-sockets.xml").read_text()
OF_GUESTS = """
    <domainCapabilities>
      <cpu><mode name='host-model' supported='yes'><model>EPYC</model></mode></cpu>
      <features>
        <sev supported='yes'><maxGuests>15</maxGuests><maxESGuests>450</maxESGuests></sev>
      </features>
    </domainCapabilities>"""
WHOLE_CPU = "<cpu><model>EPYC</model><feature policy='require' name='svm'/></cpu>"

#: "internal error: client socket is closed"
BROKEN = libvirt.VIR_ERR_INTERNAL_ERROR
LATE = libvirt.VIR_ERR_OPERATION_TIMEOUT


def failing(code: int, domain: int = libvirt.VIR_FROM_RPC) -> Callable[..., Any]:
    """A query that libvirt answers with an error."""

    def fail(*_: object) -> Any:
        error = libvirt.libvirtError("a question")
        error.err = (code, domain, "a question", 2, None, None, None, 0, 0)
        raise error

    return fail


class Named:
    """A domain or a node device."""

    def __init__(self, text: str, *, is_active: int = 1) -> None:
        self.XMLDesc: Callable[[], str] = lambda: text
        self.isActive: Callable[[], int] = lambda: is_active


class Connection:
    """A connection to a host with a GPU, a mediated device and two guests."""

    def __init__(self) -> None:
        self.mdev = Named(mdev_xml(provider_uuid("mdev"), "pci_0000_84_00_0"))
        self.devices = [Named(gpu_xml("84", available=3)), self.mdev]
        self.domains = [Named(domain_xml(consumer_uuid(name))) for name in ("i1", "i2")]
        self.getDomainCapabilities: Callable[[], str] = lambda: OF_GUESTS
        self.baselineCPU: Callable[[list[str], int], str] = lambda cpus, flags: WHOLE_CPU

    def isAlive(self) -> int:
        return 1

    def getCapabilities(self) -> str:
        return CAPABILITIES

    def getCPUMap(self) -> tuple[int, list[bool], int]:
        return 32, [True] * 32, 32

    def getInfo(self) -> list[str | int]:
        """Only the memory is read."""
        return ["x86_64", 65536]

    def listAllDevices(self, flags: int) -> list[Named]:
        return self.devices

    def listAllDomains(self) -> list[Named]:
        return self.domains

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.fixture
def host(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> LibvirtHost:
    """The host of this connection."""
    from berth.hosts.drivers.libvirt.connection import LibvirtHost

    monkeypatch.setattr(libvirt, "open", lambda uri: connection)
    return LibvirtHost("qemu:///system")


@pytest.mark.parametrize("code", [BROKEN, LATE])
def test_what_libvirt_fails_to_tell_is_not_taken_for_gone(
    host: LibvirtHost, connection: Connection, code: int
) -> None:
    """If a connection breaks or an answer is late, the pass is abandoned, whichever query it
    was."""
    asked: list[tuple[object, str, Callable[[], object]]] = [
        (connection, "getDomainCapabilities", host.machine),
        (connection, "baselineCPU", host.machine),
        (connection.domains[1], "XMLDesc", host.guests),
        (connection.domains[1], "isActive", host.guests),
        (connection.mdev, "XMLDesc", host.devices),
        (connection.mdev, "isActive", host.devices),
    ]
    for whom, name, question in asked:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(whom, name, failing(code))
            with pytest.raises(HostUnreadable, match="libvirt at qemu:///system: a question"):
                question()
        question()


def test_what_goes_while_it_is_listed_or_is_odd_is_left_out(
    host: LibvirtHost, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    """A guest is undefined, or a device removed; a document that cannot be parsed is said once."""
    connection.domains[0].isActive = failing(libvirt.VIR_ERR_NO_DOMAIN)
    connection.domains[0].XMLDesc = failing(libvirt.VIR_ERR_NO_DOMAIN)
    odd = domain_xml(consumer_uuid("i3")).replace("<vcpu>", "<")
    connection.domains.append(Named(odd))
    for _ in range(2):
        assert [guest.uuid for guest in host.guests()] == [consumer_uuid("i2")]
    assert caplog.text.count("Skipping one of libvirt's documents") == 1
    connection.mdev.XMLDesc = failing(libvirt.VIR_ERR_NO_NODE_DEVICE)
    devices = host.devices()
    assert (len(devices.parents), len(devices.mdevs)) == (1, 0)


@pytest.mark.parametrize(
    "fail",
    [
        failing(libvirt.VIR_ERR_NO_SUPPORT, libvirt.VIR_FROM_TEST),  # libvirt's test driver, lxc
        failing(libvirt.VIR_ERR_INVALID_ARG, libvirt.VIR_FROM_QEMU),  # there is no emulator
        failing(libvirt.VIR_ERR_CONFIG_UNSUPPORTED, libvirt.VIR_FROM_CPU),
        failing(libvirt.VIR_ERR_INTERNAL_ERROR, libvirt.VIR_FROM_CPU),  # an unknown CPU model
        failing(libvirt.VIR_ERR_OPERATION_FAILED, libvirt.VIR_FROM_CPU),  # CPUs that do not match
    ],
)
def test_a_host_that_cannot_tell_of_guests_cpus_is_reported(
    host: LibvirtHost, connection: Connection, fail: Callable[..., Any]
) -> None:
    """Without an emulator, on ARM, or with a CPU model that libvirt does not know."""
    assert host.machine().cpu_features == {"svm"}
    connection.baselineCPU = fail
    assert host.machine().encryption_slots == {"sev": 15, "sev_es": 450}
    connection.getDomainCapabilities = fail
    machine = host.machine()
    assert (len(machine.online_cpus), machine.encryption_slots) == (32, {})


def test_libvirts_own_words_of_an_unknown_cpu_are_forgiven(
    monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    """The message of its test driver about an unknown CPU model."""
    from berth.hosts.drivers.libvirt.connection import LibvirtHost

    real = libvirt.open("test:///default")
    monkeypatch.setattr(libvirt, "open", lambda uri: connection)
    for cpu in (
        "<cpu><arch>x86_64</arch><model>nosuch</model></cpu>",
        "<cpu><arch>s390x</arch><model>z13</model></cpu>",
        "<cpu><model>EPYC</model></cpu>",
    ):
        connection.baselineCPU = partial(lambda cpu, _, flags: real.baselineCPU([cpu], flags), cpu)
        assert LibvirtHost("test:///default").machine().cpu_features == frozenset()


def test_a_mediated_device_that_is_only_defined_is_not_counted(
    host: LibvirtHost, connection: Connection
) -> None:
    """It uses no capacity, so as many as before can be created; libvirt lists it too."""
    defined = [mdev_xml(provider_uuid(f"mdev{n}"), "pci_0000_84_00_0") for n in range(4)]
    connection.devices += [Named(text, is_active=0) for text in defined]
    options, tree = {"mdev": [{"type": "nvidia-35"}], "disk": "/"}, empty_tree()
    LibvirtDriver(host, LibvirtOptions.read(options)).update_provider_tree(tree, "cn1")
    assert tree.data("cn1_pci_0000_84_00_0").inventory["VGPU"]["total"] == 4
    connection.mdev.isActive = failing(libvirt.VIR_ERR_NO_SUPPORT)
    assert len(host.devices().mdevs) == 1, "a libvirt that does not tell lists none but these"


def test_capabilities_that_make_no_sense_are_said(
    host: LibvirtHost, connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An invalid number may be gone in the next pass, so it does not end the agent."""
    text = "<c><host><topology><cells><cell id='x'/></cells></topology></host></c>"
    monkeypatch.setattr(connection, "getCapabilities", lambda: text)
    with pytest.raises(HostUnreadable, match="libvirt at qemu:///system: invalid literal"):
        host.machine()


# --- libvirt's own test driver --------------------------------------------------------------------


def test_libvirts_own_test_driver() -> None:
    """Over a real connection: CPUs, memory, and the mediated devices of a guest."""
    options = {"uri": "test:///default", "disk": "/", "mdev": [{"type": "nvidia-35"}]}
    tree = empty_tree()
    load_driver("libvirt", options).update_provider_tree(tree, "cn1")
    root, connection = tree.data("cn1"), libvirt.open("test:///default")
    online = sum(connection.getCPUMap()[1])
    assert root.inventory["VCPU"] == {"total": online, "max_unit": online, "allocation_ratio": 4.0}
    assert root.inventory["MEMORY_MB"] == {"total": 3072, "max_unit": 3072, "reserved": 512}
    assert root.traits == {"HW_ARCH_I686"}
    mdev = "4b20d080-1b54-4048-85b3-a6a62d165c01"
    text = domain_xml(consumer_uuid("i1"), mdevs=[mdev], pins="0 1", size=(2, 1024))
    domain = connection.defineXML(text)
    guest = read_guest(domain.XMLDesc(), is_running=bool(domain.isActive()))
    assert (guest.uuid, guest.mdevs, guest.is_running) == (consumer_uuid("i1"), (mdev,), False)
    assert guest.pins == (frozenset({0}), frozenset({1}))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"uri": "test:///nowhere"}, "libvirt at test:///nowhere: "),
        ({"uri": "test:///default", "disk": "/nowhere"}, "options.disk: cannot read /nowhere: No"),
    ],
)
def test_what_is_not_there_is_told(options: dict[str, Any], said: str) -> None:
    """The error has the URI and libvirt's message, or the option with its path."""
    with pytest.raises(HostUnreadable, match=said):
        load_driver("libvirt", options).update_provider_tree(empty_tree(), "cn1")
