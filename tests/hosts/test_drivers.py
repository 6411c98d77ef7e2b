# SPDX-License-Identifier: Apache-2.0
"""Drivers: how they are found, what cannot be meant, and hosts with spoilt files or real ones."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import Any, Final

import msgspec
import pytest
import yaml

from berth.hosts import BadProviderTree, drivers
from berth.hosts.agent_config import read_agent_config
from berth.hosts.drivers import driver_names, load_driver
from berth.hosts.drivers.host_model.options import (
    SHARED_CLASSES,
    HostOptions,
    LibvirtOptions,
    LinuxOptions,
    MdevRule,
)
from berth.hosts.drivers.linux import LinuxDriver, make_driver
from berth.hosts.drivers.linux.devices import read_mdev_parents
from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.drivers.linux.nvml import find_nvml, read_nvml
from berth.hosts.drivers.provider_config import read_additions
from berth.hosts.drivers.static import read_declaration
from berth.hosts.errors import BadConfiguration, HostUnreadable
from berth.hosts.files import Watched
from berth.hosts.plan import make_plan
from berth.hosts.provider_tree import ProviderTree
from tests.docs.pages import DOCS, blocks
from tests.hosts import linux_hosts as hosts
from tests.hosts.linux_hosts import FakeNVML, empty_tree, picture, report
from tests.hosts.machines import FOUR_NODES, GPU_HOST, SRIOV_HOST, TWO_SOCKETS, Machine
from tests.worlds import provider_uuid

_GUEST: Final = "9a4a6b8e-0c7d-4e62-8f0a-0d1c2b3a4f50"
_META: Final = "meta: {schema_version: '1.0'}\n"
_MISTAKES: Final = msgspec.yaml.decode(Path(__file__).with_name("mistakes.yaml").read_bytes())


def test_a_driver_is_loaded_by_its_name() -> None:
    """It gets its options, and a function that returns usages."""
    driver = load_driver("linux", {"model": "numa"}, used=lambda uuid: {uuid: 1})
    assert isinstance(driver, LinuxDriver) and driver.used is not None
    assert driver.used("x") == {"x": 1}
    with pytest.raises(BadConfiguration) as refused:
        load_driver("windows", {})
    listed = ", ".join(driver_names())
    assert str(refused.value) == f"Unknown driver 'windows'; the installed ones are {listed}"


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        ("no_such_library_x:create", "other needs a library that is not installed"),
        ("json:no_such_function", "other cannot be loaded from json:no_such_function"),
        ("json:loads", "other, json:loads cannot be created: TypeError"),
    ],
)
def test_a_driver_of_another_package_that_is_broken_is_named(
    monkeypatch: pytest.MonkeyPatch, function: str, fault: str
) -> None:
    """With its package, so that its author is asked."""
    points = EntryPoints([EntryPoint("other", function, drivers.GROUP)])
    monkeypatch.setattr(drivers, "entry_points", points.select)
    with pytest.raises(BadConfiguration, match=fault):
        load_driver("other", {})


# --- Options and files ----------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "said", "sentence"), _MISTAKES)
def test_a_mistake_is_told_in_a_sentence(
    tmp_path: Path, kind: str, said: Any, sentence: str
) -> None:
    """It names the place, the value, and what would be valid."""
    path = tmp_path / "a.yaml"
    before = {
        "entries": f"{_META}providers: ",
        "entry": f"{_META}providers: [{{identification: {{name: a}}, ",
    }
    with pytest.raises(BadConfiguration) as refused:
        if isinstance(said, dict):
            load_driver(kind, said)
        path.write_text(before.get(kind, "") + said + "}]" * (kind == "entry"))
        if kind == "file":
            read_declaration(path)
        read_additions([path])
    start = f"driver {kind}, " if isinstance(said, dict) else str(path)
    assert all(fault.startswith(start) for fault in refused.value.faults)
    assert any(sentence in fault for fault in refused.value.faults)
    assert len(refused.value.faults) == 1 or kind == "nova"


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    """So that the operator does not repair one after the other."""
    with pytest.raises(BadConfiguration) as refused:
        LinuxOptions.read({"model": 1, "pci": [{}, {"device": "x"}], "disk": "here"})
    assert [fault.partition(":")[0] for fault in refused.value.faults] == [
        "driver linux, options.model",
        "driver linux, options.pci[0]",
        "driver linux, options.pci[1].device",
        "driver linux, options.disk",
    ]
    path = tmp_path / "providers.yaml"
    path.write_text("traits: [x]\ninventories: {VCPU: {}}\nmore: 1")
    with pytest.raises(BadConfiguration) as refused:
        read_declaration(path)
    assert len(refused.value.faults) == 3
    with pytest.raises(BadConfiguration, match="expected text of length <= 200, got 'xxx"):
        path.write_text(f"children: [{{name: {'x' * 201}}}]")
        read_declaration(path)


def test_what_is_said_is_read_in_any_case() -> None:
    """Names in any case become traits and classes; addresses are compared in lower case."""
    assert LinuxOptions.read({}) == LinuxOptions()
    options = LinuxOptions.read(
        {
            "cpu_dedicated": 4,
            "pci": [
                {
                    "device": "8086:154C",
                    "functions_of": "0000:AF:00.0",
                    "resource_class": "srIOV_net_vf",
                    "traits": ["hw_nic_sriov_trusted", "custom_gold", "my-rack"],
                }
            ],
            "mdev": [{"type": "nvidia-35", "parents": ["0000:84:00.0"]}],
            "placements": {_GUEST.upper(): {0: 4, 1: 2}, _GUEST.replace("50", "51"): [1]},
        }
    )
    (rule,) = options.pci
    assert (rule.device, rule.functions_of) == (("8086", "154c"), "0000:af:00.0")
    assert rule.resource_class == "SRIOV_NET_VF"
    assert rule.traits == {"HW_NIC_SRIOV_TRUSTED", "CUSTOM_GOLD", "CUSTOM_MY_RACK"}
    assert options.mdev[0].parents == {"pci_0000_84_00_0"}
    assert set(options.cpu_dedicated or ()) == {4}
    assert options.placements == {_GUEST: {0: 4, 1: 2}, _GUEST.replace("50", "51"): {1: 1}}


@pytest.mark.parametrize(
    "options", [LinuxOptions, LibvirtOptions], ids=lambda options: options.driver
)
def test_every_option_is_on_its_page(options: type[HostOptions]) -> None:
    """docs/hosts-*.md describe the options that exist, and their examples are valid."""
    page = (DOCS / f"hosts-{options.driver}.md").read_text()
    examples = [yaml.safe_load(block.text) for block in blocks(page, "yaml")]
    assert [options.read(example["options"]) for example in examples if "options" in example]
    assert {*options.__struct_fields__} <= {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)}
    for rule_field in MdevRule.__struct_fields__ if options is LibvirtOptions else ():
        assert f"| `{rule_field}` |" in page


def test_the_files_of_the_page_are_good(tmp_path: Path) -> None:
    """Those of the static driver and of nova's format."""
    agent, static, additions = blocks((DOCS / "hosts-static.md").read_text(), "yaml")
    path = tmp_path / "a.yaml"
    path.write_text(agent.text)
    assert load_driver("static", read_agent_config(path).options)
    path.write_text(static.text)
    assert len(read_declaration(path).providers) == 3
    path.write_text(additions.text)
    assert len(read_additions([path])) == 1
    path.write_text("meta: {schema_version: '1.7'}\nnew: 1\n" + additions.text.partition("\n")[2])
    assert len(read_additions([path])) == 1, "of a newer version, what is known"


def test_a_change_while_a_file_is_read_is_seen_later(tmp_path: Path) -> None:
    """At the next check: the content is compared with the state before the read."""
    path = tmp_path / "file"
    path.write_text("1")

    def read(_: object) -> str:
        text = path.read_text()
        if text == "1":
            path.write_text("two")
        return text

    watched = Watched(lambda: [path], read)
    assert [watched.value(), watched.value(), watched.value()] == ["1", "two", "two"]


# --- Spoilt files ---------------------------------------------------------------------------------

#: Kernels differ, devices disappear while they are read, and a container may see only some files.
OPTIONS: Final[dict[str, Any]] = {
    "model": "numa",
    "huge_pages": "providers",
    "mdev": [{"type": "nvidia-222"}],
    "pci": [{"device": "8086:154c", "resource_class": "SRIOV_NET_VF"}, {"device": "15b3:1017"}],
}


def directory(path: Path) -> None:
    """A directory in place of the file."""
    path.unlink()
    path.mkdir()


#: No file, an empty one, one with other content, and numbers larger than those of any host.
SPOILERS: Final[tuple[Callable[[Path], Any], ...]] = (
    lambda path: path.write_bytes(b""),
    lambda path: path.write_bytes(b"\xff\xfe\x00-,-7x\n:" * 3),
    lambda path: path.write_text("0-99999999999999\n"),
    lambda path: path.write_text(f"MemTotal: {10**20} kB\n" if "mem" in path.name else "9" * 20),
    directory,
    os.unlink,
)


@pytest.mark.parametrize("machine", [GPU_HOST, SRIOV_HOST, FOUR_NODES], ids=["GPU", "SR-IOV", "4"])
def test_one_file_that_is_spoilt_is_no_traceback(tmp_path: Path, machine: Machine) -> None:
    """Each file in turn, in each way; the reported tree is still valid."""
    root = machine.write(tmp_path)
    host = hosts.driver(machine, root, **OPTIONS)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() or path.is_symlink()]
    for path in files:
        target = path.readlink() if path.is_symlink() else None
        content = b"" if target else path.read_bytes()
        for spoil in (os.unlink,) if target else SPOILERS:
            spoil(path)
            tree = empty_tree()
            try:
                report(host, tree)
                plan = make_plan(empty_tree(), tree, tree.roots[0].uuid)
            except (HostUnreadable, BadConfiguration, BadProviderTree) as error:
                assert str(error), "it is told what is wrong"
            else:
                assert plan.inventories
            if path.is_dir() and not path.is_symlink():
                path.rmdir()
            path.unlink(missing_ok=True)
            if target is not None:
                path.symlink_to(target)
            else:
                path.write_bytes(content)


def test_directories_that_are_not_there_are_done_without(tmp_path: Path) -> None:
    """A container may see half of /sys: the rest is reported, or there is an error."""
    rng = Random(6)
    for number in range(20):
        root = GPU_HOST.write(tmp_path / str(number))
        host = hosts.driver(GPU_HOST, root, **OPTIONS)
        folders = sorted(path for path in root.rglob("*") if path.is_dir())
        for path in rng.sample(folders, 3):
            rmtree(path, ignore_errors=True)
        tree = empty_tree()
        try:
            report(host, tree)
        except HostUnreadable as error:
            assert str(root) in str(error)
        else:
            every = map(tree.data, tree.get_provider_uuids())
            assert {name for data in every for name in data.inventory} <= {*SHARED_CLASSES, "VGPU"}


def test_a_vgpu_that_comes_while_it_is_counted_is_counted_once(tmp_path: Path) -> None:
    """The GPU has no capacity left, so it does not count both as existing and as possible."""
    GPU_HOST.write(tmp_path)
    gpu, kind = "0000:85:00.0", "nvidia-222"
    path = f"sys/class/mdev_bus/{gpu}/mdev_supported_types/{kind}/available_instances"
    before = {parent.address: parent for parent in read_mdev_parents(HostFiles(tmp_path))}[gpu]

    class Busy(HostFiles):
        """A host on which a guest starts between the two reads."""

        has_started = False

        def number(self, asked: str) -> int | None:
            """The number in the file at that time."""
            if asked == path and not self.has_started:
                self.has_started = True
                (tmp_path / path).with_name("devices").joinpath("guest").mkdir(parents=True)
                (tmp_path / path).write_text(f"{before.available[kind] - 1}\n")
            return super().number(asked)

    counted = {parent.address: parent for parent in read_mdev_parents(Busy(tmp_path))}[gpu]
    assert counted.made[kind] == before.made[kind] + 1
    assert counted.available[kind] == before.available[kind] - 1


# --- Real hosts -----------------------------------------------------------------------------------


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
    assert totals["VCPU"] >= 1 and totals["DISK_GB"] >= 1
    assert abs(totals["MEMORY_MB"] - int(meminfo[1]) // 1024) < 256
    assert any(trait.startswith("HW_ARCH_") for trait in tree.data("cn1").traits)
    once = picture(tree)
    report(host, tree)
    assert picture(tree) == once
    with pytest.raises(BadConfiguration, match="disk: cannot read /no/such: No such file"):
        report(make_driver({"disk": "/no/such"}), tree)


def test_the_real_library_has_what_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on any machine: without a driver there are no GPUs, and no error. It is an extra."""
    library = find_nvml()
    assert library is not None
    missing = [name for name in vars(FakeNVML) if name[:4] == "nvml" and not hasattr(library, name)]
    assert not missing
    assert all(device.counts for device in read_nvml(HostFiles(tmp_path), library, print))
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_nvml() is None


# --- Names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("old", "new"), [("cn1", "pci_rack_9"), ("web_1", "web")])
def test_the_children_of_a_renamed_host_are_named_anew(tmp_path: Path, old: str, new: str) -> None:
    """No provider is created again: each driver finds its own under the old names, also if the new
    name is the beginning of the old one."""
    tree = ProviderTree()
    tree.new_root(old, provider_uuid(old))
    file = tmp_path / "providers.yaml"
    file.write_text("children: [{name: $NODE_disk, inventories: {CUSTOM_GB: {total: 9}}}]")
    every = (
        hosts.driver(GPU_HOST, tmp_path, model="numa", mdev=[{"type": "nvidia-222"}]),
        load_driver("static", {"file": str(file), "state": str(tmp_path / "owned.json")}),
    )

    def names() -> dict[str, str]:
        for driver in every:
            driver.update_provider_tree(tree, tree.roots[0].name)
        return {data.uuid: data.name for data in map(tree.data, tree.get_provider_uuids())}

    before = names()
    tree.rename(old, new)
    assert names() == {uuid: name.replace(old, new) for uuid, name in before.items()}
    tree.rename(new, old)
    assert names() == before


def test_a_child_of_the_file_that_was_not_marked_is_its_own(tmp_path: Path) -> None:
    """A pass was killed right after creating it: its uuid identifies it, and it is deleted with its
    entry."""
    tree, file = empty_tree(), tmp_path / "providers.yaml"
    for number, text in enumerate(("children: [{name: $NODE_disk}]",) * 2 + ("{}",)):
        file.write_text(text)
        load_driver("static", {"file": str(file)}).update_provider_tree(tree, "cn1")
        if number == 0:
            tree.remove_traits("cn1_disk", "CUSTOM_OWNER_BERTH_STATIC")
    assert not tree.exists("cn1_disk")


def test_a_note_with_other_content_is_not_overwritten(tmp_path: Path) -> None:
    """It is told to move it away."""
    (tmp_path / "a.yaml").write_text("{}")
    (tmp_path / "owned.json").write_text("[]")
    options = {"file": str(tmp_path / "a.yaml"), "state": str(tmp_path / "owned.json")}
    with pytest.raises(BadConfiguration, match="move it away"):
        load_driver("static", options).update_provider_tree(empty_tree(), "cn1")
    assert (tmp_path / "owned.json").read_text() == "[]"


def test_a_linux_host_and_a_file_leave_each_other_alone(tmp_path: Path) -> None:
    """Each can report first, and be removed without the other."""
    tree, file = empty_tree(), tmp_path / "providers.yaml"
    state = tmp_path / "owned.json"
    text = """
inventories: {CUSTOM_LICENCE: {total: 3}}
traits: [CUSTOM_RACK_7]
children:
  - {name: $NODE_NUMA0, inventories: {CUSTOM_CACHE: {total: 2}}, traits: [CUSTOM_PHYSNET_A]}
  - {name: $NODE_pci_0000_99_00_0, inventories: {FPGA: {total: 1}}}
"""

    def linux(model: str = "numa") -> None:
        report(hosts.driver(TWO_SOCKETS, tmp_path, used=lambda uuid: {}, model=model), tree, {})

    def static(said: str = text) -> None:
        state.unlink(missing_ok=True)
        file.write_text(said)
        driver = load_driver("static", {"file": str(file), "state": str(state)})
        driver.update_provider_tree(tree, "cn1")

    linux()
    alone = picture(tree)
    static()
    both = picture(tree)
    assert both["cn1_NUMA0"].inventory.keys() == {"VCPU", "MEMORY_MB", "CUSTOM_CACHE"}
    assert both["cn1_pci_0000_99_00_0"].inventory["FPGA"]["total"] == 1
    for again in (linux, static, linux):
        again()
        assert picture(tree) == both
    linux("flat")
    flat = picture(tree)
    assert flat["cn1_NUMA0"].inventory.keys() == {"CUSTOM_CACHE"}
    assert "cn1_NUMA1" not in flat
    linux()
    assert picture(tree) == both
    static("{}")
    assert picture(tree).keys() == alone.keys(), "who it added to cannot be told"
