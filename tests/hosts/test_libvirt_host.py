# SPDX-License-Identifier: Apache-2.0
"""A host with libvirt: its CPUs, memory, disk, traits and NUMA nodes, on machines of several kinds.

Some tests use libvirt's own test driver, if its Python binding is installed (`berthd[libvirt]`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from berth.hosts import BadProviderTree
from berth.hosts.drivers import load_driver
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.options import read_options
from berth.hosts.drivers.libvirt.xml_documents import (
    Cell,
    read_capabilities,
    read_cpu_features,
    read_encryption_slots,
    read_guest,
    read_host_model,
    read_node_device,
)
from berth.hosts.errors import BadConfiguration, HostUnreadable
from tests.hosts.libvirt_hosts import RECORDED, RecordedHost, domain_xml
from tests.hosts.reporting import periodic, start
from tests.hosts.stage import Stage, consumer_uuid, drawn


def driver(host: RecordedHost, **options: Any) -> LibvirtDriver:
    """A driver with options as an operator writes them."""
    return LibvirtDriver(host, read_options(options))


def stocks(stage: Stage, provider: str) -> str:
    """A provider's line of the picture: inventories and traits."""
    lines = (line.strip() for line in stage.picture().splitlines())
    return next(line for line in lines if line.split()[0] == provider)


@pytest.fixture
def stage(service_in_process: Stage) -> Iterator[Stage]:
    """An empty service in this process: the transport does not matter here."""
    yield service_in_process
    service_in_process.clear()


# --- Inventories ----------------------------------------------------------------------------------


def test_a_flat_host_has_everything_on_its_root(stage: Stage) -> None:
    """The defaults: ratio 4 for VCPU, 512 MiB reserved."""
    host = driver(RecordedHost("two-sockets"))
    start(stage, host)
    assert stage.picture() == drawn(
        """
        cn1  DISK_GB=100(max:100)  MEMORY_MB=65536(max:65536,reserved:512) \
             VCPU=32(max:32,ratio:4.0)  HW_ARCH_X86_64  HW_CPU_HYPERTHREADING \
             HW_CPU_X86_AESNI  HW_CPU_X86_AVX2  HW_CPU_X86_AVX512VNNI  HW_CPU_X86_CLMUL \
             HW_CPU_X86_INTEL_VMX  HW_CPU_X86_SHA  HW_CPU_X86_SSE41  HW_CPU_X86_SSE42 \
             HW_CPU_X86_STIBP  HW_CPU_X86_VMX
        """
    )
    assert not periodic(stage, host)


def test_what_is_not_configured_is_left_to_operators(stage: Stage) -> None:
    """Reserved amounts, ratios, classes and traits that they set through the API."""
    stage.show(
        """
        cn1  VCPU=8(ratio:2.0,reserved:1)  MEMORY_MB=4096(reserved:99)  CUSTOM_X=1  HW_CPU_X86_AVX \
             CUSTOM_MINE
        """
    )
    start(stage, driver(RecordedHost(), allocation_ratios={"MEMORY_MB": 1.5}, disk=False))
    line = stocks(stage, "cn1")
    assert "VCPU=8(reserved:1,max:8,ratio:2.0)" in line
    assert "MEMORY_MB=16384(reserved:99,max:16384,ratio:1.5)" in line
    assert "CUSTOM_X=1" in line
    assert "CUSTOM_MINE" in line
    assert "HW_CPU_X86_AVX " not in line, "a guest does not get it here"
    assert "DISK_GB" not in line


@pytest.mark.parametrize(
    ("options", "vcpus", "pcpus"),
    [
        ({}, 8, 0),
        ({"cpu_dedicated": "4-7"}, 0, 4),
        ({"cpu_shared": "0-1", "cpu_dedicated": "4-7"}, 2, 4),
        ({"cpu_shared": "0-7,^2"}, 7, 0),
    ],
)
def test_shared_and_dedicated_cpus(
    stage: Stage, options: dict[str, Any], vcpus: int, pcpus: int
) -> None:
    """A class without CPUs is left out."""
    start(stage, driver(RecordedHost(), **options))
    line = stocks(stage, "cn1")
    assert (f" VCPU={vcpus}(" in line) == bool(vcpus)
    assert (f" PCPU={pcpus}(max:{pcpus})" in line) == bool(pcpus)


def test_a_shared_disk_is_not_counted_twice(stage: Stage) -> None:
    """If a sharing provider serves the host's disk, the host reports none; an existing inventory on
    the root stays."""
    nfs = "    nfs  DISK_GB=1000  MISC_SHARES_VIA_AGGREGATE  @A\n"
    stage.show(nfs + "    cn1  VCPU=8  @A\n    cn2  DISK_GB=7  @A")
    for node in ("cn1", "cn2"):
        start(stage, driver(RecordedHost()), node)
    assert "DISK_GB" not in stocks(stage, "cn1")
    assert "DISK_GB=100" in stocks(stage, "cn2")


# --- NUMA nodes -----------------------------------------------------------------------------------

#: Two nodes with eight CPUs and 16 GiB each are enough for scenario B.
FLAT = """
    cn1  VCPU=16(reserved:2,ratio:4.0)  PCPU=16  MEMORY_MB=65536(reserved:1024) \
         DISK_GB=100  HW_CPU_X86_AVX2
    i1: cn1 PCPU=4 MEMORY_MB=8192 DISK_GB=20
    i2: cn1 VCPU=2 MEMORY_MB=4096 DISK_GB=20
    i3: cn1 PCPU=8 MEMORY_MB=16385 DISK_GB=20
    i4: cn1 VCPU=2 MEMORY_MB=1000
"""

#: CPUs 0-7 and 16-23 are on node 0, the others on node 1.
CPUS = {"cpu_shared": "0-7,8-15", "cpu_dedicated": "16-31"}


def numa_host() -> RecordedHost:
    """The guests of scenario B: one on node 0, one bound to node 1, one on both, one unpinned."""
    pins = {"i1": "16 17 18 19", "i3": "20 21 22 23 24 25 26 27"}
    host = RecordedHost("two-sockets")
    for name in ("i1", "i2", "i3", "i4"):
        memory = "1" if name == "i2" else ""
        text = domain_xml(consumer_uuid(name), pins=pins.get(name, ""), memory=memory)
        host.domains.append((text, True))
    return host


def test_b_cpus_and_memory_move_to_the_numa_nodes(stage: Stage) -> None:
    """Scenario B: guests move to the nodes that they are pinned to, with reserved amounts and
    ratios.

    What cannot be divided moves to the first node.
    """
    stage.show(FLAT)
    host = driver(numa_host(), model="numa", **CPUS)
    assert start(stage, host).is_reshape
    cell = "MEMORY_MB=32768(reserved:512,max:32768)  PCPU=8(max:8)  VCPU=8(reserved:1,max:8"
    picture = stage.picture()
    for node in ("cn1_NUMA0", "cn1_NUMA1"):
        assert f"{node}  {cell},ratio:4.0)  CUSTOM_OWNER_BERTH  HW_NUMA_ROOT" in picture
    assert stocks(stage, "cn1").startswith("cn1  DISK_GB=100(max:100)  HW_ARCH")
    assert picture.splitlines()[-4:] == [
        "i1: cn1 DISK_GB=20, cn1_NUMA0 MEMORY_MB=8192 PCPU=4",
        "i2: cn1 DISK_GB=20, cn1_NUMA1 MEMORY_MB=4096 VCPU=2",
        "i3: cn1 DISK_GB=20, cn1_NUMA0 MEMORY_MB=8193 PCPU=4, cn1_NUMA1 MEMORY_MB=8192 PCPU=4",
        "i4: cn1_NUMA0 MEMORY_MB=1000 VCPU=2",
    ]
    assert not start(stage, driver(numa_host(), model="numa", **CPUS))


def test_a_guest_that_is_pinned_in_part_is_where_its_memory_is(stage: Stage) -> None:
    """One of its CPUs stays on a node, the other runs on both."""
    stage.show("cn1  VCPU=32  MEMORY_MB=65536\ni1: cn1 VCPU=2 MEMORY_MB=2048")
    text = domain_xml(consumer_uuid("i1"), pins="0 0-31", memory="0-1")
    host = RecordedHost("two-sockets", domains=[(text, True)])
    start(stage, driver(host, model="numa", disk=False))
    assert stage.picture().splitlines()[-1] == (
        "i1: cn1_NUMA0 MEMORY_MB=1024 VCPU=1, cn1_NUMA1 MEMORY_MB=1024 VCPU=1"
    )


def test_b_and_back(stage: Stage) -> None:
    """The nodes are removed, and every guest has on the root what it had on them."""
    stage.show(FLAT)
    start(stage, driver(numa_host(), model="numa", **CPUS))
    start(stage, driver(numa_host(), **CPUS))
    assert stage.picture().splitlines()[-4:] == [
        "i1: cn1 DISK_GB=20 MEMORY_MB=8192 PCPU=4",
        "i2: cn1 DISK_GB=20 MEMORY_MB=4096 VCPU=2",
        "i3: cn1 DISK_GB=20 MEMORY_MB=16385 PCPU=8",
        "i4: cn1 MEMORY_MB=1000 VCPU=2",
    ]
    line = stocks(stage, "cn1")
    assert "VCPU=16(reserved:2,max:16,ratio:4.0)" in line
    assert "MEMORY_MB=65536(reserved:1024,max:65536)" in line
    assert "NUMA" not in stage.picture()


def test_who_does_not_fit_a_node_is_told(stage: Stage) -> None:
    """The error names the node, the amount needed and the capacity; nothing moves."""
    before = FLAT.replace("i4: cn1 VCPU=2 MEMORY_MB=1000", "i4: cn1 MEMORY_MB=30000")
    stage.show(before)
    guests = numa_host()
    guests.domains[3] = (domain_xml(consumer_uuid("i4"), memory="0"), True)
    with pytest.raises(
        BadProviderTree, match="cn1_NUMA0 has 32256 MEMORY_MB, but 46385 are needed"
    ):
        start(stage, driver(guests, model="numa", **CPUS))
    assert stage.picture() == drawn(before)


def test_nodes_with_gaps_and_without_cpus(stage: Stage) -> None:
    """Node ids may have gaps; a node with memory only has no CPUs."""
    start(stage, driver(RecordedHost("sparse-nodes"), model="numa", disk=False))
    assert "VCPU=8(max:8,ratio:4.0)" in stocks(stage, "cn1_NUMA8")
    assert stocks(stage, "cn1_NUMA255").split()[:2] == [
        "cn1_NUMA255",
        "MEMORY_MB=16384(reserved:57,max:16384)",
    ]
    assert "reserved:227" in stocks(stage, "cn1_NUMA0"), "its part of 512"
    assert stocks(stage, "cn1").split()[1:] == ["HW_ARCH_PPC64LE", "HW_CPU_HYPERTHREADING"]


def test_a_host_without_numa_nodes_is_flat(stage: Stage) -> None:
    """If the configuration asks for NUMA nodes, the host logs it."""
    with pytest.raises(BadConfiguration, match="libvirt reports no NUMA nodes here; use flat"):
        start(stage, driver(RecordedHost("no-cells"), model="numa"))


def test_a_cpu_that_libvirt_does_not_tell_of_is_where_the_kernel_has_it(stage: Stage) -> None:
    """A power manager has taken the dedicated CPUs of both nodes offline before the agent
    started."""
    parked = dict.fromkeys(range(2, 16), 0) | dict.fromkeys(range(16, 32), 1)
    host = RecordedHost("two-sockets", resting=frozenset(parked), resting_on=parked)
    start(stage, driver(host, model="numa", cpu_shared="0-1", cpu_dedicated="2-31"))
    assert " PCPU=14(" in stocks(stage, "cn1_NUMA0")
    assert " PCPU=16(" in stocks(stage, "cn1_NUMA1")


def test_dedicated_cpus_must_be_there(stage: Stage) -> None:
    """The error names each missing CPU; an offline one counts as present."""
    resting = RecordedHost(resting=frozenset({7}))
    start(stage, driver(resting, cpu_shared="0-6", cpu_dedicated="7"))
    assert " PCPU=1(max:1)" in stocks(stage, "cn1")
    with pytest.raises(BadConfiguration, match="cpu_dedicated names CPU 8, 9, but the host has"):
        start(stage, driver(RecordedHost(), cpu_dedicated="7-9"))


# --- libvirt itself -------------------------------------------------------------------------------


def test_libvirts_own_test_driver(stage: Stage) -> None:
    """Over a real connection: CPUs, memory, and the mediated devices of a guest."""
    libvirt = pytest.importorskip("libvirt")
    options = {"uri": "test:///default", "disk": "/", "mdev": [{"type": "nvidia-35"}]}
    host = load_driver("libvirt", options)
    start(stage, host)
    line = stocks(stage, "cn1")
    connection = libvirt.open("test:///default")
    online = sum(connection.getCPUMap()[1])
    assert f"VCPU={online}(max:{online},ratio:4.0)" in line
    assert "MEMORY_MB=3072(reserved:512,max:3072)" in line
    assert line.endswith("HW_ARCH_I686")

    mdev = "4b20d080-1b54-4048-85b3-a6a62d165c01"
    domain = connection.defineXML(
        domain_xml(consumer_uuid("i1"), mdevs=[mdev], pins="0 1", size=(2, 1024))
    )
    guest = read_guest(domain.XMLDesc(), is_running=bool(domain.isActive()))
    assert (guest.uuid, guest.mdevs, guest.is_running) == (consumer_uuid("i1"), (mdev,), False)
    assert guest.pins == (frozenset({0}), frozenset({1}))


def test_a_libvirt_that_does_not_answer_is_said(stage: Stage) -> None:
    """The error has the URI and libvirt's message."""
    pytest.importorskip("libvirt")
    with pytest.raises(HostUnreadable, match="libvirt at test:///nowhere: "):
        start(stage, load_driver("libvirt", {"uri": "test:///nowhere"}))


def test_an_odd_guest_does_not_hide_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """A domain whose XML cannot be parsed is left out with a warning; the others are reported."""
    connection = pytest.importorskip("berth.hosts.drivers.libvirt.connection")

    class Domain:
        """A domain, as far as the driver uses it."""

        def __init__(self, text: str) -> None:
            self.XMLDesc = lambda: text

        def isActive(self) -> int:
            """True."""
            return 1

    class Connection:
        """A connection with two domains."""

        def listAllDomains(self) -> list[Domain]:
            """One of them has invalid XML."""
            good = domain_xml(consumer_uuid("i1"))
            return [Domain(good.replace("<vcpu>", "<")), Domain(good)]

    host = connection.LibvirtHost("test:///default")
    for _ in range(2):
        (guest,) = connection._guests(Connection(), tell=host._tell)
    assert guest.uuid == consumer_uuid("i1")
    assert caplog.text.count("Skipping one of libvirt's documents") == 1


def test_capabilities_that_make_no_sense_are_said(stage: Stage) -> None:
    """An invalid number may be gone in the next pass, so it does not end the agent."""
    connection = pytest.importorskip("berth.hosts.drivers.libvirt.connection")
    text = "<c><host><topology><cells><cell id='x'/></cells></topology></host></c>"
    host = connection.LibvirtHost("test:///default")
    with pytest.raises(HostUnreadable, match="libvirt at test:///default: invalid literal"):
        host._ask(lambda _: read_capabilities(text))


def test_a_disk_that_is_not_there_is_told(stage: Stage) -> None:
    """The error names the option with its path."""
    pytest.importorskip("libvirt")
    options = {"uri": "test:///default", "disk": "/nowhere"}
    with pytest.raises(HostUnreadable, match=r"options\.disk: cannot read /nowhere: No such file"):
        start(stage, load_driver("libvirt", options))


def test_capabilities_of_libvirts_own_test_driver() -> None:
    """As recorded from libvirt 9.0."""
    read = read_capabilities((RECORDED / "test-default.xml").read_text())
    assert (read.arch, read.cpu, read.has_hyperthreads) == ("i686", None, False)
    assert read.cells == (
        Cell(0, frozenset(range(8)), 2097152),
        Cell(1, frozenset(range(8, 16)), 4194304),
    )


# --- Documents and options ------------------------------------------------------------------------


def test_the_cpu_that_guests_get() -> None:
    """From the domain capabilities, mode host-model; disabled and forbidden features do not
    count."""
    model = read_host_model(
        """
        <domainCapabilities><cpu>
          <mode name='host-passthrough' supported='yes'/>
          <mode name='host-model' supported='yes'>
            <model fallback='forbid'>Skylake</model>
            <feature policy='require' name='vmx'/>
            <feature policy='disable' name='avx2'/>
            <feature policy='forbid' name='rtm'/>
          </mode>
        </cpu></domainCapabilities>
        """
    )
    assert model is not None
    assert read_cpu_features(model) == {"vmx"}
    assert read_host_model("<domainCapabilities/>") is None


def test_memory_encryption_is_a_provider_for_each_kind(stage: Stage) -> None:
    """With the numbers of the domain capabilities; each guest uses one."""
    sev = "<sev supported='yes'><maxGuests>59</maxGuests><maxESGuests>450</maxESGuests></sev>"
    text = f"<domainCapabilities><features>{sev}</features></domainCapabilities>"
    assert read_encryption_slots(text.replace("yes", "no")) == {}
    start(stage, driver(RecordedHost(encryption=read_encryption_slots(text))))
    picture = stage.picture()
    assert "cn1_amd_sev  MEM_ENCRYPTION_CONTEXT=59(max:1)" in picture
    assert "cn1_amd_sev_es  MEM_ENCRYPTION_CONTEXT=450(max:1)" in picture


def test_other_node_devices_are_left_aside() -> None:
    """Devices that are unrelated to mediated devices are ignored."""
    text = "<device><name>scsi_host1</name><capability type='scsi_host'/></device>"
    assert not list(read_node_device(text))
    with pytest.raises(HostUnreadable, match="cannot parse libvirt's XML"):
        list(read_node_device("<device>"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"cpus": 4},
            "options.cpus: unknown key; possible keys: allocation_ratios, assume, cpu_dedi",
        ),
        ({"uri": 4}, "driver libvirt, options.uri: expected text, got 4"),
        ({"model": "tree"}, "options.model: expected flat or numa, got 'tree'"),
        ({"cpu_shared": "a-b"}, "cpu_shared: expected a list of CPUs such as 0-3,8, got 'a-b'"),
        ({"cpu_shared": "0-3", "cpu_dedicated": "3-4"}, "cpu_shared: CPU 3 is in cpu_dedicated"),
        ({"disk": "images"}, "disk: expected an absolute path, got 'images'"),
        ({"reserved": {"VGPU": 1}}, "reserved.VGPU: expected one of VCPU, PCPU, MEMORY_MB"),
        ({"reserved": {"VCPU": -1}}, "reserved.VCPU: expected a whole number >= 0, got -1"),
        ({"allocation_ratios": {"VCPU": 0}}, "ratios.VCPU: expected a number > 0.0, got 0"),
        ({"mdev": {}}, "options.mdev: expected a list, got {}"),
        ({"mdev": [{}]}, "options.mdev[0].type: is missing"),
        ({"mdev": [{"type": "a", "class": "b"}]}, "mdev[0].class: unknown key; possible keys: ins"),
        ({"mdev": [{"type": "a", "resource_class": "GPU"}]}, "or one that begins with CUSTOM_"),
        ({"mdev": [{"type": "a"}, {"type": "b"}]}, "of the types a, b, only one may leave out its"),
        (
            {"mdev": [{"type": kind, "parents": ["0000:84:00.0"]} for kind in "ab"]},
            "mdev: pci_0000_84_00_0 cannot be of both types a and b",
        ),
        ({"assume": ["x"]}, "assume: expected a mapping of uuids, got ['x']"),
    ],
)
def test_an_option_that_cannot_be_meant_is_told(options: dict[str, Any], said: str) -> None:
    """One sentence: the option, its value, and what would be valid."""
    with pytest.raises(BadConfiguration) as refused:
        read_options(options)
    (fault,) = refused.value.faults
    assert said in fault
