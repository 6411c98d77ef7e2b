# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost in silence on a host: what a driver sees and does not offer, and what it offers
although it cannot know, is a notice."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from berth.hosts.drivers.libvirt.cpu_traits import cpu_traits
from berth.hosts.drivers.libvirt.driver import LibvirtDriver
from berth.hosts.drivers.libvirt.host_facts import device_notices, facts_of, node_of_cpus
from berth.hosts.drivers.libvirt.options import read_options
from berth.hosts.drivers.libvirt.xml_documents import Cell, read_encryption_slots
from berth.hosts.drivers.linux.cpu_traits import read_cpu_traits
from berth.hosts.drivers.linux.files import HostFiles
from tests.hosts.libvirt_hosts import RecordedHost, domain_xml, gpu_host, pci_xml
from tests.hosts.linux_hosts import driver, empty_tree, report
from tests.hosts.machines import ARM_SERVER, GPU_HOST, ONE_SOCKET, TWO_SOCKETS
from tests.hosts.machines.machine import GIB, PCI, Machine, Node
from tests.hosts.stage import consumer_uuid
from tests.hosts.test_linux_reading import UNCUT, FakeNVML, FakeNVMLError

_NODE: Final = "sys/devices/system/node"
_CPU: Final = "sys/devices/system/cpu"
_MEMORY_ONLY: Final = replace(
    TWO_SOCKETS, nodes={**TWO_SOCKETS.nodes, 2: Node(cpus="", memory_kib=8 * GIB)}
)


def put(root: Path, path: str, text: str) -> None:
    """Write a file of the host."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(f"{text}\n")


def reported(root: Path, **options: Any) -> tuple[dict[str, int], tuple[str, ...]]:
    """What the Linux driver offers of each class in all, and its notices."""
    host, tree = driver(TWO_SOCKETS, root, **options), empty_tree()
    report(host, tree)
    offered: dict[str, int] = {}
    for uuid in tree.get_provider_uuids():
        for name, record in tree.data(uuid).inventory.items():
            offered[name] = offered.get(name, 0) + record["total"]
    return offered, host.notices


@pytest.mark.parametrize("model", ["flat", "numa"])
def test_the_memory_of_gpus_is_not_offered(tmp_path: Path, model: str) -> None:
    """On POWER9 and Grace it is a NUMA node without CPUs, of which NVIDIA's driver tells."""
    _MEMORY_ONLY.write(tmp_path)
    put(tmp_path, "proc/driver/nvidia/gpus/0004:04:00.0/numa_status", "Node: 2\nStatus: online")
    offered, notices = reported(tmp_path, model=model)
    assert offered["MEMORY_MB"] == 64 * 1024
    assert notices == ("NUMA node 2 is memory of GPUs, and is not offered",)


def test_a_node_with_cpus_is_offered_whatever_the_driver_of_gpus_says(tmp_path: Path) -> None:
    """Its memory is the host's."""
    TWO_SOCKETS.write(tmp_path)
    put(tmp_path, "proc/driver/nvidia/gpus/0004:04:00.0/numa_status", "Node: 1\nStatus: online")
    offered, notices = reported(tmp_path)
    assert (offered["MEMORY_MB"], notices) == (64 * 1024, ())


@pytest.mark.parametrize("model", ["flat", "numa"])
def test_memory_without_cpus_is_offered_with_a_notice(tmp_path: Path, model: str) -> None:
    """It may be the host's, on a CXL card, or a device's: the kernel does not say."""
    _MEMORY_ONLY.write(tmp_path)
    offered, (notice,) = reported(tmp_path, model=model)
    assert offered["MEMORY_MB"] == 72 * 1024
    assert notice.startswith("NUMA node 2 has 8,192 MiB of memory and no CPUs; it is offered")


def test_cpus_of_a_node_that_is_not_listed_are_offered_there(tmp_path: Path) -> None:
    """Their own directories name the node."""
    TWO_SOCKETS.write(tmp_path)
    put(tmp_path, f"{_NODE}/online", "0")
    shutil.rmtree(tmp_path / f"{_NODE}/node1")
    for cpu in range(16, 32):
        (tmp_path / f"{_CPU}/cpu{cpu}/node1").mkdir(parents=True, exist_ok=True)
    offered, (notice,) = reported(tmp_path, model="numa")
    assert offered["VCPU"] == 32
    assert notice.startswith("CPUs 16-31 are on NUMA node 1, which the kernel does not list")


def test_cpus_of_no_known_node_are_offered_with_a_notice(tmp_path: Path) -> None:
    """With the CPUs before them."""
    TWO_SOCKETS.write(tmp_path)
    put(tmp_path, f"{_NODE}/node1/cpulist", "16-29")
    for cpu in (30, 31):
        shutil.rmtree(tmp_path / f"{_CPU}/cpu{cpu}/node1", ignore_errors=True)
    offered, (notice,) = reported(tmp_path, model="numa")
    assert offered["VCPU"] == 32
    assert "on which NUMA node CPUs 30-31 are" in notice


def test_nodes_are_found_without_their_list(tmp_path: Path) -> None:
    """As `lscpu` finds them: by their directories."""
    TWO_SOCKETS.write(tmp_path)
    (tmp_path / f"{_NODE}/online").unlink()
    offered, notices = reported(tmp_path, model="numa")
    assert (offered["VCPU"], offered["MEMORY_MB"], notices) == (32, 64 * 1024, ())


@pytest.mark.parametrize(
    ("module", "kind"), [("kvm_amd", "sev"), ("kvm_amd", "sev_es"), ("kvm_intel", "tdx")]
)
def test_encryption_without_a_number_is_not_offered(tmp_path: Path, module: str, kind: str) -> None:
    """Kernels before 5.13 say that it is supported, and not for how many guests."""
    TWO_SOCKETS.write(tmp_path)
    put(tmp_path, f"sys/module/{module}/parameters/{kind}", "Y")
    offered, (notice,) = reported(tmp_path)
    assert "MEM_ENCRYPTION_CONTEXT" not in offered
    assert f"supports {kind.upper().replace('_', '-')} for an unknown number of guests" in notice
    put(tmp_path, "sys/fs/cgroup/misc.capacity", f"{kind} 15")
    offered, notices = reported(tmp_path)
    assert (offered["MEM_ENCRYPTION_CONTEXT"], notices) == (15, ())


def notices_of(host: RecordedHost) -> tuple[str, ...]:
    """The notices of the facts that libvirt tells of a host."""
    machine = host.machine()
    nodes = node_of_cpus(machine, {})
    return facts_of(machine, [], read_options({}), node_of=nodes, disk_gib=0).notices


def test_libvirt_before_8_tells_no_number_of_encrypted_guests() -> None:
    """Supported without a number is told from not supported."""
    sev = "<sev supported='yes'><cbitpos>47</cbitpos></sev>"
    text = f"<domainCapabilities><features>{sev}</features></domainCapabilities>"
    slots = read_encryption_slots(text)
    assert slots == {"sev": None, "sev_es": None}
    (notice,) = notices_of(RecordedHost(encryption=slots))
    assert "SEV and SEV-ES for an unknown number of guests" in notice
    assert notices_of(RecordedHost()) == ()


def test_libvirt_tells_the_memory_of_gpus_as_cells() -> None:
    """Cells without CPUs; NVIDIA's driver says which are those of its GPUs."""
    host = RecordedHost("two-sockets", of_gpus=frozenset({8}))
    machine = host.machine()
    cells = (*machine.capabilities.cells, Cell(8, frozenset(), 8 * GIB))
    capabilities = replace(machine.capabilities, cells=cells)
    machine = replace(machine, capabilities=capabilities, memory_mib=machine.memory_mib + 8 * 1024)
    nodes = node_of_cpus(machine, {})
    facts = facts_of(machine, [], read_options({}), node_of=nodes, disk_gib=0)
    assert 8 not in facts.nodes
    assert facts.whole.memory_kib == host.machine().memory_mib * 1024
    assert facts.notices == ("NUMA node 8 is memory of GPUs, and is not offered",)
    unknown = replace(machine, of_gpus=frozenset())
    facts = facts_of(unknown, [], read_options({}), node_of=nodes, disk_gib=0)
    assert facts.notices[0].startswith("NUMA node 8 has 8,192 MiB of memory and no CPUs")


class OddNVML(FakeNVML):
    """NVIDIA's library with two GPUs, of which a call fails or answers something else."""

    def __init__(self, call: str, answer: object) -> None:
        super().__init__()

        def odd(*numbers: int) -> Any:
            if numbers[-1:] in ((), (0,)) or (numbers == (1,) and "MigMode" not in call):
                if isinstance(answer, Exception):
                    raise answer
                return answer
            return getattr(FakeNVML, call)(self, *numbers)

        setattr(self, call, odd)


_TIMEOUT: Final = FakeNVMLError("Timeout")


@pytest.mark.parametrize(
    ("call", "answer", "offered", "notice"),
    [
        ("nvmlInit", _TIMEOUT, 0, "GPU 0000:84:00.0 is not offered: NVIDIA's library fails: Time"),
        ("nvmlInit", FakeNVMLError("Driver Not Loaded"), 0, "fails: Driver Not Loaded"),
        ("nvmlDeviceGetCount", _TIMEOUT, 0, "library fails: Timeout"),
        ("nvmlDeviceGetCount", 1, 1, "GPU 0000:85:00.0 is not offered: NVIDIA's driver does not"),
        ("nvmlDeviceGetPciInfo", _TIMEOUT, 0, "GPU 1 is not offered, because it cannot be read"),
        ("nvmlDeviceGetMigMode", _TIMEOUT, 3, "GPU 0 is not offered, because it cannot be read"),
        ("nvmlDeviceGetMigMode", (1, 1), 6, None),
        ("nvmlDeviceGetMaxMigDeviceCount", 0, 1, "is in MIG mode, and has no slices to offer"),
        ("nvmlDeviceGetMigDeviceHandleByIndex", _TIMEOUT, 3, "Slice 0 of the GPU 0000:85:00.0"),
        ("nvmlDeviceGetMigDeviceHandleByIndex", 1, 3, "names no profile"),
    ],
)
def test_a_gpu_that_is_seen_and_not_offered_is_said(
    tmp_path: Path, call: str, answer: object, offered: int, notice: str | None
) -> None:
    """Whether the library fails or one GPU or slice does: what is left of three slices and one
    whole GPU is offered."""
    UNCUT.write(tmp_path)
    amounts, notices = reported(tmp_path, nvml=OddNVML(call, answer))
    assert sum(amounts[name] for name in amounts if "MIG" in name or name == "PGPU") == offered
    assert notice is None or notice in "; ".join(notices)
    assert (notice is None) == (not notices)


def test_without_nvidias_library_each_gpu_is_said(tmp_path: Path) -> None:
    """It is an extra. A GPU that a rule offers is no concern of the library."""
    UNCUT.write(tmp_path)
    _, notices = reported(tmp_path)
    assert len(notices) == 2
    assert "pip install 'berthd[nvidia]'" in notices[0]
    assert reported(tmp_path, nvml=None, pci=[{"address": "*"}])[1] == ()


@pytest.mark.parametrize(
    ("machine", "options", "notice"),
    [
        (GPU_HOST, {"mdev": [{"type": "none-1"}]}, "can have no mediated devices of none-1"),
        (GPU_HOST, {"mdev": [{"type": "nvidia-222", "parents": ["0000:ff:00.0"]}]}, "0000_ff_00_0"),
        (
            replace(ONE_SOCKET, pci={"0000:84:00.0": PCI("10de:1eb8", mdev={"b": (2, 0)})}),
            {},
            "pci_0000_84_00_0 has mediated devices of b, which no rule offers",
        ),
        (TWO_SOCKETS, {"pci": [{"address": "0000:ff:00.0"}]}, "the host has no 0000:ff:00.0"),
        (
            TWO_SOCKETS,
            {"pci": [{"functions_of": "0000:ff:00.0"}]},
            "has no virtual functions of 0000:ff:00.0 to offer",
        ),
        (ARM_SERVER, {}, "Only some CPUs have HW_CPU_AARCH64_SVE: it is not reported"),
    ],
    ids=["type", "parent", "no rule", "address", "functions", "some CPUs"],
)
def test_what_is_there_and_not_offered_is_said(
    tmp_path: Path, machine: Machine, options: dict[str, Any], notice: str
) -> None:
    """Whatever the reason; once."""
    machine.write(tmp_path)
    _, notices = reported(tmp_path, nvml=FakeNVML("no driver"), **options)
    assert sum(notice in said for said in notices) >= 1


def test_offline_cpus_are_said(tmp_path: Path) -> None:
    """Those that would be offered as VCPU; a dedicated one is brought online for its consumer."""
    TWO_SOCKETS.write(tmp_path)
    put(tmp_path, f"{_CPU}/online", "0-29")
    notice = "CPUs 30-31 are offline, and are not offered as VCPU"
    assert notice in reported(tmp_path)[1]
    assert notice in reported(tmp_path, cpu_shared="8-31", cpu_dedicated="0-7")[1]
    assert notice not in reported(tmp_path, cpu_shared="0-7", cpu_dedicated="28-31")[1]


@pytest.mark.parametrize(
    ("arch", "traits"),
    [
        ("aarch64", {"HW_CPU_AARCH64_AES", "HW_CPU_AARCH64_SHA1"}),
        ("armv7l", set()),
        ("loongarch64", set()),
        ("x86_64", {"HW_CPU_X86_AESNI"}),
    ],
)
def test_a_word_has_the_meaning_of_its_processor(
    tmp_path: Path, arch: str, traits: set[str]
) -> None:
    """`aes` is AES-NI on x86 only, whoever says it."""
    word = "flags" if arch == "x86_64" else "Features"
    ONE_SOCKET.write(tmp_path)
    put(tmp_path, "proc/cpuinfo", f"processor\t: 0\n{word}\t: aes sha1 crc32x")
    linux, _ = read_cpu_traits(HostFiles(tmp_path), arch)
    assert (
        linux
        == traits
        == cpu_traits(["aes", "sha1"], arch=arch, has_hyperthreads=False)
        - {f"HW_ARCH_{arch.upper()}"}
    )


def test_guests_with_vgpus_that_nobody_claimed_are_said() -> None:
    """Their vGPUs count as free, so another consumer could get them."""
    host = gpu_host({"i1": "84 84", "i2": "85"}, stopped="i2")
    libvirt = LibvirtDriver(host, read_options({"mdev": [{"type": "nvidia-35"}]}))
    allocated, tree = {"VGPU": 1}, empty_tree()
    libvirt.used = lambda uuid: allocated
    for amount, said in ((1, True), (2, False)):
        allocated["VGPU"] = amount
        libvirt.update_provider_tree(tree, "cn1")
        for uuid in tree.get_provider_uuids():
            tree.update_inventory(uuid, tree.data(uuid).inventory, generation=1)
        libvirt.update_provider_tree(tree, "cn1")
        notice = "Guests have 2 VGPU of cn1_pci_0000_84_00_0, and 1 are allocated"
        assert any(notice in sentence for sentence in libvirt.notices) == said


def test_guests_on_dedicated_cpus_that_nobody_claimed_are_said() -> None:
    """They are pinned to more of them than are allocated."""
    host = RecordedHost()
    host.domains.append((domain_xml(consumer_uuid("i1"), pins="2 3"), True))
    libvirt = LibvirtDriver(host, read_options({"cpu_dedicated": "2-5"}))
    libvirt.used, tree = (lambda uuid: {}), empty_tree()
    libvirt.update_provider_tree(tree, "cn1")
    (notice,) = libvirt.notices
    assert notice.startswith("Guests are pinned to CPUs 2-3 of cpu_dedicated, and 0 PCPU are")


@pytest.mark.parametrize(
    ("page_kib", "allocated", "notices"),
    [
        (0, {}, ["6144 MEMORY_MB, and 512", "6 VCPU, and 0"]),
        (0, {"VCPU": 6, "MEMORY_MB": 5632}, []),
        (2048, {"VCPU": 6, "MEMORY_MB": 6144}, ["6144 MEMORY_MB in pages of 2048 KiB, and 0"]),
    ],
)
def test_guests_that_nobody_claimed_are_said(
    page_kib: int, allocated: dict[str, int], notices: list[str]
) -> None:
    """Others could get their CPUs and their memory; what is reserved may be meant for them."""
    host = RecordedHost("two-sockets", huge_kib={page_kib: 4 * 1024**2} if page_kib else {})
    for name, is_running in (("i1", True), ("i2", True), ("i3", False)):
        size = (3, 3072)
        xml = domain_xml(consumer_uuid(name), size=size, page_kib=page_kib)
        host.domains.append((xml, is_running))
    libvirt, tree = LibvirtDriver(host, read_options({"huge_pages": "providers"})), empty_tree()
    use: dict[str, int] = {}
    libvirt.used = lambda uuid: use if uuid == tree.data("cn1").uuid else {}
    for _ in range(2):
        libvirt.update_provider_tree(tree, "cn1")
        for uuid in tree.get_provider_uuids():
            tree.update_inventory(uuid, tree.data(uuid).inventory, generation=1)
        use.update(allocated)
    assert list(libvirt.notices) == [
        f"Running guests have {notice} are allocated or reserved: the others are offered although "
        "they are in use"
        for notice in notices
    ]


def test_the_use_of_guests_is_asked_for_when_something_changed() -> None:
    """And again after a while: who is deleted changes no provider."""
    host = RecordedHost()
    asked: list[str] = []

    def used(uuid: str) -> dict[str, int]:
        asked.append(uuid)
        return {}

    libvirt, tree = LibvirtDriver(host, read_options({})), empty_tree()
    libvirt.used = used
    for _ in range(20):
        libvirt.update_provider_tree(tree, "cn1")
        for uuid in tree.get_provider_uuids():
            tree.update_inventory(uuid, tree.data(uuid).inventory, generation=1)
        if not host.domains:
            host.domains.append((domain_xml(consumer_uuid("i1"), size=(1, 0)), True))
    assert len(asked) == 2


def test_libvirt_says_what_it_does_not_offer() -> None:
    """A CPU on a node without a cell is offered there; TDX has no number; a rule has no device."""
    encryption = (
        "<domainCapabilities><features><tdx supported='yes'/></features></domainCapabilities>"
    )
    assert read_encryption_slots(encryption) == {"tdx": None}
    host = RecordedHost("two-sockets", node_devices=[pci_xml("0000:81:00.0", "8086:1572")])
    machine = host.machine()
    capabilities = replace(machine.capabilities, cells=machine.capabilities.cells[:1])
    options = read_options({"model": "numa", "pci": [{"address": "0000:81:00.1"}]})
    lost = machine.present_cpus - machine.capabilities.cells[0].cpus
    machine = replace(machine, capabilities=capabilities, resting_on=dict.fromkeys(lost, 8))
    nodes = node_of_cpus(machine, {})
    facts = facts_of(machine, [], options, node_of=nodes, disk_gib=0)
    assert sum(part.vcpus for part in facts.nodes.values()) == facts.whole.vcpus
    machine = replace(machine, resting_on={})
    facts = facts_of(machine, [], options, node_of=node_of_cpus(machine, {}), disk_gib=0)
    assert "It is unknown on which NUMA node CPUs" in facts.notices[0]
    assert device_notices(host.devices(), options) == [
        "options.pci: the host has no 0000:81:00.1 to offer"
    ]
