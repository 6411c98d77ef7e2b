# SPDX-License-Identifier: Apache-2.0
"""Reading a host's files, with the differences between kernels, firmware and machines."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from berth.hosts.drivers.hosts.id_lists import read_id_list
from berth.hosts.drivers.hosts.shares import share_out, share_to_first
from berth.hosts.drivers.linux import LinuxDriver, make_driver
from berth.hosts.drivers.linux.cpu_traits import read_cpu_traits
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.mdev import read_mdev_parents
from berth.hosts.drivers.linux.memory import read_memory
from berth.hosts.drivers.linux.nvml import find_nvml, read_nvml
from berth.hosts.drivers.linux.topology import read_topology
from berth.hosts.errors import BadConfiguration, HostUnreadable
from berth.hosts.plan import make_plan
from tests.hosts import linux_hosts as hosts
from tests.hosts.linux_hosts import drawing, empty_tree, report
from tests.hosts.machines import ARM_SERVER, FOUR_NODES, GPU_HOST, ONE_SOCKET, TWO_SOCKETS
from tests.hosts.machines.machine import PCI, Machine, Node


def put(root: Path, path: str, text: str) -> HostFiles:
    """Write one file of a host; return the host."""
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)
    return HostFiles(root)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("", set()),
        ("0", {0}),
        ("0-2,8\n", {0, 1, 2, 8}),
        ("0-3,^2,8", {0, 1, 3, 8}),
        ("^2,0-3", {0, 1, 3}),
    ],
)
def test_lists_of_ids_are_read_as_the_kernel_and_libvirt_write_them(
    text: str, ids: set[int]
) -> None:
    """Ranges and single ids; a node without CPUs has an empty list."""
    assert read_id_list(text) == ids


# --- CPUs -----------------------------------------------------------------------------------------


def test_flags_become_traits(tmp_path: Path) -> None:
    """By the names in /proc/cpuinfo, which differ from those of the traits; some are of one
    vendor."""
    intel, _ = read_cpu_traits(HostFiles(TWO_SOCKETS.write(tmp_path / "intel")), "x86_64")
    amd, _ = read_cpu_traits(HostFiles(FOUR_NODES.write(tmp_path / "amd")), "x86_64")
    prefix = "HW_CPU_X86_"
    both = {"SSE3", "CLMUL", "FMA3", "SSE41", "SSE42", "AESNI", "BMI", "BMI2", "AVX2", "PDPE1GB"}
    assert {prefix + name for name in both} <= intel & amd
    assert {trait.removeprefix(prefix) for trait in intel - amd} == {
        "AVX512BW", "AVX512CD", "AVX512DQ", "AVX512F", "AVX512VL", "AVX512VNNI", "INTEL_MD_CLEAR",
        "INTEL_PCID", "INTEL_SPEC_CTRL", "INTEL_SSBD", "INTEL_VMX", "TSX", "VMX",
    }  # fmt: skip
    assert {trait.removeprefix(prefix) for trait in amd - intel} == {
        "ABM", "AMD_IBPB", "AMD_SSBD", "AMD_SVM", "AMD_VIRT_SSBD", "AVX512VAES",
        "AVX512VPCLMULQDQ", "SHA", "SSE4A", "SVM",
    }  # fmt: skip


def test_what_only_some_cpus_can_do_is_no_trait(tmp_path: Path) -> None:
    """A guest may run on any CPU; flags without a trait are skipped."""
    traits, of_some = read_cpu_traits(HostFiles(ARM_SERVER.write(tmp_path)), "aarch64")
    assert of_some == {"HW_CPU_AARCH64_SVE"}
    assert {trait.removeprefix("HW_CPU_AARCH64_") for trait in traits} == {
        "FP", "ASIMD", "EVTSTRM", "AES", "PMULL", "SHA1", "SHA2", "CRC32", "ATOMICS",
    }  # fmt: skip


def test_power_processors_are_known_by_their_model(tmp_path: Path) -> None:
    """They list no flags."""
    cpu = "cpu\t\t: POWER9, altivec supported"
    files = put(
        tmp_path, "proc/cpuinfo", f"processor\t: 0\n{cpu}\n\nprocessor\t: 1\n{cpu}\n\nmachine\t: P"
    )
    assert read_cpu_traits(files, "ppc64le")[0] == {"HW_CPU_PPC64LE_POWER9"}


def test_a_cpu_that_rests_stays_on_the_node_where_it_was(tmp_path: Path) -> None:
    """The kernel removes an offline CPU from its node's list but keeps its link to the node.
    Without a link, one that was never online belongs to the node of the CPUs before it."""
    nodes = {0: Node(cpus="0,2,4"), 1: Node(cpus="1,3,5")}
    before = read_topology(
        HostFiles(replace(TWO_SOCKETS, nodes=nodes).write(tmp_path / "before")), remembered={}
    )
    resting = {0: Node(cpus="0,2,4"), 1: Node(cpus="1,5")}
    files = HostFiles(
        replace(TWO_SOCKETS, nodes=resting, present="0-5").write(tmp_path / "resting")
    )
    assert read_topology(files, remembered=before.node_of).node_of == before.node_of
    assert read_topology(files, remembered={}).node_of[3] == 0
    (tmp_path / "resting/sys/devices/system/cpu/cpu3/node1").mkdir(parents=True)
    assert read_topology(files, remembered={}).node_of == before.node_of


@pytest.mark.parametrize("has_threads", [True, False])
def test_threads_are_seen_where_the_kernel_has_no_switch_for_them(
    tmp_path: Path, has_threads: bool
) -> None:
    """Older kernels only list the siblings of each CPU."""
    files = HostFiles(ONE_SOCKET.write(tmp_path))
    (tmp_path / "sys/devices/system/cpu/smt/active").unlink()
    siblings = "sys/devices/system/cpu/cpu0/topology/thread_siblings_list"
    put(tmp_path, siblings, "0,4" if has_threads else "0")
    assert read_topology(files, remembered={}).has_threads is has_threads


def test_a_kernel_without_numa_is_one_node(tmp_path: Path) -> None:
    """With all CPUs, all memory, and the huge pages, which are listed elsewhere then."""
    put(tmp_path, "proc/meminfo", "MemTotal:  4194304 kB")
    put(tmp_path, "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "10")
    put(tmp_path, "sys/kernel/mm/hugepages/hugepages-2048kB/surplus_hugepages", "4")
    files = put(tmp_path, "sys/devices/system/cpu/online", "0-3")
    topology = read_topology(files, remembered={})
    assert topology.nodes == (0,)
    assert set(topology.node_of.values()) == {0}
    memory = read_memory(files, topology.nodes)
    assert memory.node_kib == {0: 4194304}
    assert memory.huge_kib == {0: {2048: 6 * 2048}}


def test_a_host_that_tells_nothing_is_an_error(tmp_path: Path) -> None:
    """As if the host's files are not mounted; it is not a host without CPUs."""
    with pytest.raises(HostUnreadable, match="cpu/online does not say which CPUs the host has"):
        report(make_driver({"root": str(tmp_path)}), empty_tree())
    put(tmp_path, "sys/devices/system/cpu/online", "0")
    with pytest.raises(HostUnreadable, match="proc/meminfo does not say how much memory"):
        report(make_driver({"root": str(tmp_path)}), empty_tree())


# --- Shares ---------------------------------------------------------------------------------------


def test_shares_add_up_and_never_exceed_their_weights() -> None:
    """Whatever is divided."""
    for weights in ([8, 8], [1, 1, 1], [0, 5, 3], [7]):
        for amount in range(sum(weights) + 1):
            shares = share_out(amount, weights)
            assert sum(shares) == amount
            assert all(share <= weight for share, weight in zip(shares, weights, strict=True))


def test_what_is_left_over_goes_to_the_first() -> None:
    """The rule of scenario B; whole pages, if there are pages."""
    assert share_to_first(16384, [4, 4]) == [8192, 8192]
    assert share_to_first(1000, [1, 2]) == [334, 666]
    assert share_to_first(1024, [1, 1, 1], step=2) == [344, 340, 340]


# --- Mediated devices and GPUs --------------------------------------------------------------------


def test_mediated_devices_are_counted_with_those_that_could_be_made(tmp_path: Path) -> None:
    """A rule with parents comes first; a parent without any device of the type is left out."""
    host = hosts.driver(
        GPU_HOST,
        tmp_path,
        mdev=[
            {"type": "nvidia-222"},
            {
                "type": "nvidia-223",
                "parents": ["0000:85:00.0"],
                "resource_class": "CUSTOM_VGPU_BIG",
                "traits": ["CUSTOM_BIG"],
            },
        ],
    )
    tree = empty_tree()
    report(host, tree)
    assert tree.data("cn1_pci_0000_84_00_0").inventory == {"VGPU": {"total": 4, "max_unit": 4}}
    big = tree.data("cn1_pci_0000_85_00_0")
    assert big.inventory == {"CUSTOM_VGPU_BIG": {"total": 2, "max_unit": 2}}
    assert big.traits == {
        "CUSTOM_BIG",
        "CUSTOM_DIVIDED_INTO_NVIDIA_223",
        "CUSTOM_OWNER_BERTH",
    }

    nothing = hosts.driver(
        GPU_HOST, tmp_path, mdev=[{"type": "nvidia-223", "parents": ["0000:84:00.0"]}]
    )
    tree = empty_tree()
    report(nothing, tree)
    assert len(tree.get_provider_uuids()) == 1


class FakeNVMLError(Exception):
    """The error of the fake library."""


@dataclass
class FakeNVML:
    """NVIDIA's library with two GPUs: one whole, one divided into three slices of seven."""

    #: "no driver", or "lost": all GPUs are; a number: that one is.
    fault: str | int = ""
    first: str = "Tesla V100"
    NVMLError: type[Exception] = FakeNVMLError
    is_open: bool = False

    def nvmlInit(self) -> None:
        if self.fault == "no driver":
            raise FakeNVMLError("Driver Not Loaded")
        self.is_open = True

    def nvmlShutdown(self) -> None:
        self.is_open = False

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return index

    def nvmlDeviceGetPciInfo(self, handle: Any) -> Any:
        if self.fault in ("lost", handle):
            raise FakeNVMLError("GPU is lost")
        return SimpleNamespace(busId=["00000000:84:00.0", b"00000000:85:00.0"][handle])

    def nvmlDeviceGetName(self, handle: Any) -> str:
        if isinstance(handle, str):
            return f"NVIDIA A100-SXM4-40GB MIG {handle}"
        return self.first if handle == 0 else "NVIDIA A100-SXM4-40GB"

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> Any:
        return [(7, 0) if "V100" in self.first else (8, 9), (8, 0)][handle]

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:
        if handle == 0:
            raise FakeNVMLError("Not Supported")
        return (1, 1)

    def nvmlDeviceGetMaxMigDeviceCount(self, handle: Any) -> int:
        return 7

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:
        if index > 2:
            raise FakeNVMLError("Not Found")
        return ["1g.5gb", "3g.20gb", "1g.5gb"][index]


#: The GPU host without mediated devices.
UNCUT = replace(
    GPU_HOST, pci={address: replace(device, mdev={}) for address, device in GPU_HOST.pci.items()}
)


def test_gpus_are_whole_or_counted_by_their_slices(tmp_path: Path) -> None:
    """A class for each profile; a compute capability without a standard trait gets a custom one."""
    tree = empty_tree()
    fake = FakeNVML()
    report(hosts.driver(UNCUT, tmp_path, nvml=fake, model="numa"), tree)
    assert not fake.is_open
    whole, cut = (tree.data(f"cn1_pci_0000_{bus}_00_0") for bus in (84, 85))
    assert whole.inventory == {"PGPU": {"total": 1, "max_unit": 1}}
    assert whole.traits == {
        "CUSTOM_GPU_TESLA_V100",
        "HW_GPU_CUDA_COMPUTE_CAPABILITY_V7_0",
        "CUSTOM_OWNER_BERTH",
    }
    assert {name: record["total"] for name, record in cut.inventory.items()} == {
        "CUSTOM_MIG_1G_5GB": 2,
        "CUSTOM_MIG_3G_20GB": 1,
    }
    assert "CUSTOM_HW_GPU_CUDA_COMPUTE_CAPABILITY_V8_0" in cut.traits
    assert tree.data(cut.parent_uuid or "").name == "cn1_NUMA1"


def test_another_card_in_the_same_place_has_its_own_traits(tmp_path: Path) -> None:
    """The detected traits of the old card are removed; the operator's stay."""
    tree = empty_tree()
    report(hosts.driver(UNCUT, tmp_path, nvml=FakeNVML()), tree)
    gpu = "cn1_pci_0000_84_00_0"
    tree.add_traits(gpu, "CUSTOM_GPU_FOR_ML")
    report(hosts.driver(UNCUT, tmp_path, nvml=FakeNVML(first="NVIDIA L4")), tree)
    assert tree.data(gpu).traits == {
        "CUSTOM_GPU_FOR_ML",
        "CUSTOM_GPU_NVIDIA_L4",
        "CUSTOM_HW_GPU_CUDA_COMPUTE_CAPABILITY_V8_9",
        "CUSTOM_OWNER_BERTH",
    }


def test_a_vgpu_that_comes_while_it_is_counted_is_counted_once(tmp_path: Path) -> None:
    """The GPU has no capacity left, so it does not count both as existing and as possible."""
    GPU_HOST.write(tmp_path)
    types = "sys/class/mdev_bus/0000:85:00.0/mdev_supported_types"
    before = {parent.address: parent for parent in read_mdev_parents(HostFiles(tmp_path))}[
        "0000:85:00.0"
    ]
    taken = tmp_path / types / "nvidia-222"
    number = taken / "available_instances"

    class Busy(HostFiles):
        """A host on which a guest starts between the two reads."""

        def number(self, path: str) -> int | None:
            """The number in the file at that time."""
            if path == f"{types}/nvidia-222/available_instances" and not self.has_started:
                self.has_started = True
                (taken / "devices/guest").mkdir(parents=True)
                number.write_text(f"{before.available['nvidia-222'] - 1}\n")
            return super().number(path)

        has_started = False

    counted = {parent.address: parent for parent in read_mdev_parents(Busy(tmp_path))}[
        "0000:85:00.0"
    ]
    assert counted.made["nvidia-222"] == before.made["nvidia-222"] + 1
    assert counted.available["nvidia-222"] == before.available["nvidia-222"] - 1


def test_a_gpu_is_reported_once(tmp_path: Path) -> None:
    """As the operator configured it: here one is offered whole, one as mediated devices."""
    host = hosts.driver(
        GPU_HOST,
        tmp_path,
        nvml=FakeNVML(),
        pci=[{"address": "0000:84:00.0"}],
        mdev=[{"type": "nvidia-222"}],
    )
    tree = empty_tree()
    report(host, tree)
    assert tree.data("cn1_0000:84:00.0").inventory.keys() == {"CUSTOM_PCI_10DE_1EB8"}
    assert tree.data("cn1_pci_0000_85_00_0").inventory.keys() == {"VGPU"}
    assert len(tree.get_provider_uuids()) == 3


@pytest.mark.parametrize("fault", ["no driver", "lost"])
def test_gpus_that_cannot_be_read_are_no_gpus(tmp_path: Path, fault: str) -> None:
    """The rest of the host is reported; earlier inventory of the GPUs stays unless it is unused."""
    whole = hosts.driver(UNCUT, tmp_path, nvml=FakeNVML())
    tree = empty_tree()
    report(whole, tree)
    faulty = FakeNVML(fault)
    report(hosts.driver(UNCUT, tmp_path, nvml=faulty), tree)
    assert not faulty.is_open
    assert tree.data("cn1_pci_0000_84_00_0").inventory["PGPU"]["total"] == 1


def test_a_gpu_that_is_lost_takes_no_other_with_it(tmp_path: Path) -> None:
    """GPUs before and after it are reported."""
    for lost, left in ((0, "85"), (1, "84")):
        tree = empty_tree()
        report(hosts.driver(ONE_SOCKET, tmp_path / left, nvml=FakeNVML(lost)), tree)
        assert [name for name in drawing(tree).split() if "pci" in name] == [
            f"cn1_pci_0000_{left}_00_0"
        ]


VGPU = "4b20d080-1b54-4048-85b3-a6a62d165c01"


def cut_gpu(root: Path, *, made: int, possible: int) -> Machine:
    """A GPU with four virtual functions; each can have one mediated device, up to a common
    limit."""
    functions = [f"0000:84:00.{number}" for number in range(4, 8)]
    machine = replace(
        ONE_SOCKET,
        pci={"0000:84:00.0": PCI("10de:2235", functions=dict.fromkeys(functions, "10de:2235"))},
    )
    machine.write(root)
    for number, function in enumerate(functions):
        kind = f"sys/class/mdev_bus/{function}/mdev_supported_types/nvidia-558"
        is_free = number >= made and made < possible
        put(root, f"{kind}/available_instances", str(int(is_free)))
        if number < made:
            put(root, f"{kind}/devices/{VGPU[:-1]}{number}/uevent", "")
    return machine


@pytest.mark.parametrize("made", [0, 1, 2])
def test_virtual_functions_share_what_their_gpu_can_hold(tmp_path: Path, made: int) -> None:
    """Each function shows one more possible device; an operator configures how many the memory
    allows. The GPU is not offered whole as well."""
    machine = cut_gpu(tmp_path, made=made, possible=2)
    rule = {"type": "nvidia-558"}
    nvml = FakeNVML()

    def host(**options: Any) -> LinuxDriver:
        return hosts.driver(machine, tmp_path, nvml=nvml, disk=False, **options)

    with pytest.raises(BadConfiguration, match=r"0000:84:00\.0 does not say how many"):
        report(host(mdev=[rule]), empty_tree())
    tree = empty_tree()
    report(host(mdev=[{**rule, "instances_max": 2}]), tree)
    offered = [data.inventory for data in map(tree.data, tree.get_provider_uuids("cn1"))]
    assert sum(inventory.get("VGPU", {}).get("total", 0) for inventory in offered) == 2
    assert [inventory["PGPU"]["total"] for inventory in offered if "PGPU" in inventory] == []


def test_a_gpu_with_mediated_devices_is_not_given_out_whole(tmp_path: Path) -> None:
    """Of any type, whether offered or not."""
    machine = replace(
        ONE_SOCKET, pci={"0000:84:00.0": PCI("10de:1eb8", mdev={"a": (0, 0), "b": (2, 0)})}
    )
    for place, rules in (("none", []), ("other", [{"type": "a"}])):
        tree = empty_tree()
        report(hosts.driver(machine, tmp_path / place, nvml=FakeNVML(), mdev=rules), tree)
        assert not tree.exists("cn1_pci_0000_84_00_0")


def test_the_real_library_has_what_is_used(tmp_path: Path) -> None:
    """It runs on any machine: without a driver there are no GPUs, and no error."""
    library = find_nvml()
    assert library is not None
    missing = [name for name in vars(FakeNVML) if name[:4] == "nvml" and not hasattr(library, name)]
    assert not missing
    assert all(device.counts for device in read_nvml(HostFiles(tmp_path), library, print))


def test_without_the_library_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: berthd[nvidia]."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_nvml() is None


# --- This machine ---------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["flat", "numa"])
def test_this_machine_can_be_read(model: str) -> None:
    """Whatever machine it is: it has CPUs, memory and a disk, the service accepts the tree, and a
    second pass changes nothing."""
    host = make_driver({"model": model, "huge_pages": "providers"})
    tree, before = empty_tree(), empty_tree()
    report(host, tree)
    assert make_plan(before, tree, tree.data("cn1").uuid)
    totals: dict[str, int] = {}
    for data in map(tree.data, tree.get_provider_uuids()):
        for name, record in data.inventory.items():
            totals[name] = totals.get(name, 0) + record["total"]
    meminfo = Path("/proc/meminfo").read_text().split()
    assert totals["VCPU"] >= 1
    assert abs(totals["MEMORY_MB"] - int(meminfo[1]) // 1024) < 256
    assert totals["DISK_GB"] >= 1
    assert any(trait.startswith("HW_ARCH_") for trait in tree.data("cn1").traits)
    once = hosts.picture(tree)
    report(host, tree)
    assert hosts.picture(tree) == once


def test_virtual_functions_that_become_vgpus_are_counted_by_their_gpu(tmp_path: Path) -> None:
    """Newer kernels have no mediated devices: a function has a type, or lists the possible ones."""
    card = "0000:84:00.0"
    functions = {f"0000:84:00.{number}": "10de:26b9" for number in (4, 5, 6)}
    gpu = PCI("10de:26b9", node=1, kind="030200", functions=functions)
    root = replace(GPU_HOST, pci={card: gpu}).write(tmp_path)
    types = "ID    : vGPU Name\n557   : NVIDIA L40S-1B\n558   : NVIDIA L40S-2B\n"
    for function, (current, creatable) in zip(
        functions, [("558", ""), ("0", types), ("0", types)], strict=True
    ):
        put(root, f"sys/bus/pci/devices/{function}/nvidia/current_vgpu_type", current)
        put(root, f"sys/bus/pci/devices/{function}/nvidia/creatable_vgpu_types", creatable)
    rule = {"type": "nvidia-558"}
    with pytest.raises(BadConfiguration, match="set instances_max"):
        report(hosts.driver(GPU_HOST, root, mdev=[rule]), empty_tree())
    for limit, total in ((2, 2), (8, 3)):
        tree = empty_tree()
        report(hosts.driver(GPU_HOST, root, mdev=[{**rule, "instances_max": limit}]), tree)
        assert tree.data("cn1_pci_0000_84_00_0").inventory["VGPU"]["total"] == total
