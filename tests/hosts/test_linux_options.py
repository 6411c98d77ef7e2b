# SPDX-License-Identifier: Apache-2.0
"""The options of an operator: their values, and one sentence for each invalid one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.hosts.drivers.hosts.options import (
    AnyClassName,
    AnyTraitName,
    CPUSet,
    DeviceName,
    HugePages,
    MdevRule,
    Model,
    PCIAddress,
    PCIPattern,
    PCIRule,
    VendorProduct,
)
from berth.hosts.drivers.linux import LinuxDriver, Options
from berth.hosts.drivers.linux.options import Placements, read_options
from berth.hosts.errors import BadConfiguration
from berth.hosts.fields import AbsolutePath
from tests.docs.pages import DOCS, blocks
from tests.hosts import linux_hosts as hosts
from tests.hosts.machines import SPARSE, SRIOV_HOST

GUEST = "9a4a6b8e-0c7d-4e62-8f0a-0d1c2b3a4f50"
ANOTHER = "9a4a6b8e-0c7d-4e62-8f0a-0d1c2b3a4f51"


def test_nothing_said_is_everything_at_its_default() -> None:
    """This host, flat, all of it."""
    assert read_options({}) == Options()


def test_everything_that_can_be_said_is_read() -> None:
    """Names in any case become traits and classes; addresses are compared in lower case."""
    said = {
        "root": "/host",
        "model": "numa",
        "cpu_shared": "0-3",
        "cpu_dedicated": 4,
        "huge_pages": "providers",
        "disk": False,
        "pci": [
            {
                "device": "8086:154C",
                "functions_of": "0000:AF:00.0",
                "resource_class": "srIOV_net_vf",
                "traits": ["hw_nic_sriov_trusted", "custom_gold", "my-rack"],
                "physical_network": "phys1",
            },
            {"address": "0000:3b:*"},
        ],
        "mdev": [
            {"type": "nvidia-35", "parents": ["0000:84:00.0"], "resource_class": "CUSTOM_VGPU_A"},
            {"type": "nvidia-36", "traits": ["CUSTOM_BIG"], "instances_max": 4},
        ],
        "nvml": False,
        "keep_days": 7,
        "reserved": {"VCPU": 1},
        "allocation_ratios": {"VCPU": 4},
        "placements": {GUEST.upper(): {0: 4, 1: 2}, ANOTHER: [1]},
    }
    assert read_options(said) == Options(
        root=AbsolutePath("/host"),
        model=Model.NUMA,
        cpu_shared=CPUSet({0, 1, 2, 3}),
        cpu_dedicated=CPUSet({4}),
        huge_pages=HugePages.PROVIDERS,
        disk=None,
        pci=(
            PCIRule(
                device=VendorProduct(("8086", "154c")),
                functions_of=PCIAddress("0000:af:00.0"),
                resource_class=AnyClassName("SRIOV_NET_VF"),
                traits=frozenset(
                    map(AnyTraitName, ("HW_NIC_SRIOV_TRUSTED", "CUSTOM_GOLD", "CUSTOM_MY_RACK"))
                ),
                physical_network="phys1",
            ),
            PCIRule(address=PCIPattern("0000:3b:*")),
        ),
        mdev=(
            MdevRule(
                "nvidia-35",
                frozenset({DeviceName("pci_0000_84_00_0")}),
                AnyClassName("CUSTOM_VGPU_A"),
            ),
            MdevRule("nvidia-36", traits=frozenset({AnyTraitName("CUSTOM_BIG")}), instances_max=4),
        ),
        nvml=False,
        keep_days=7,
        reserved={"VCPU": 1},
        allocation_ratios={"VCPU": 4.0},
        placements=Placements({GUEST: {0: 4, 1: 2}, ANOTHER: {1: 1}}),
    )


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"modle": "flat"},
            "driver linux, options.modle: unknown key; did you mean model?",
        ),
        ({"model": "tree"}, "driver linux, options.model: expected flat or numa, got 'tree'"),
        (
            {"cpu_shared": "3-0"},
            "driver linux, options.cpu_shared: expected a list of CPUs such as 0-3,8, got '3-0'",
        ),
        (
            {"cpu_shared": "^0-1"},
            "driver linux, options.cpu_shared: expected at least one CPU, or no such option, got "
            "'^0-1'",
        ),
        (
            {"cpu_shared": "0-3", "cpu_dedicated": "2-4"},
            "driver linux, options.cpu_shared: CPU 2, 3 is in cpu_dedicated too",
        ),
        ({"root": "host"}, "driver linux, options.root: expected an absolute path, got 'host'"),
        ({"nvml": "no"}, "driver linux, options.nvml: expected true or false, got 'no'"),
        ({"pci": {}}, "driver linux, options.pci: expected a list, got {}"),
        ({"pci": ["x"]}, "driver linux, options.pci[0]: expected a mapping, got 'x'"),
        (
            {"pci": [{"address": "0000:81:00.0"}, {"traits": []}]},
            "driver linux, options.pci[1]: needs device, address or functions_of, to select "
            "devices",
        ),
        (
            {"pci": [{"device": 8086}]},
            "driver linux, options.pci[0].device: expected text; put it in quotes, got 8086",
        ),
        (
            {"pci": [{"functions_of": "81:00.0"}]},
            "driver linux, options.pci[0].functions_of: expected a PCI address such as "
            "0000:81:00.0, "
            "got '81:00.0'",
        ),
        (
            {"pci": [{"address": "eth0"}]},
            "driver linux, options.pci[0].address: expected a PCI address such as 0000:81:00.0, in "
            "which * and ? are wildcards, got 'eth0'",
        ),
        (
            {"pci": [{"device": "8086"}]},
            "driver linux, options.pci[0].device: expected vendor and product such as 8086:1572, "
            "got '8086'",
        ),
        (
            {"mdev": [{"type": "a", "resource_class": "GPU"}]},
            "driver linux, options.mdev[0].resource_class: expected a standard resource class, or "
            "one that begins with CUSTOM_, got 'GPU'",
        ),
        ({"mdev": [{}]}, "driver linux, options.mdev[0].type: is missing"),
        (
            {"mdev": [{"type": "a", "traits": "x"}]},
            "driver linux, options.mdev[0].traits: expected a list, got 'x'",
        ),
        (
            {"mdev": [{"type": "a"}, {"type": "b"}]},
            "driver linux, options.mdev: of the types a, b, only one may leave out its parents",
        ),
        (
            {"mdev": [{"type": "a", "parents": ["x"]}, {"type": "b", "parents": ["x"]}]},
            "driver linux, options.mdev: x cannot be of both types a and b",
        ),
        (
            {"reserved": {"VGPU": 1}},
            "driver linux, options.reserved.VGPU: expected one of VCPU, PCPU, MEMORY_MB, "
            "DISK_GB, got "
            "'VGPU'",
        ),
        (
            {"reserved": {"VCPU": -1}},
            "driver linux, options.reserved.VCPU: expected a whole number >= 0, got -1",
        ),
        (
            {"allocation_ratios": {"VCPU": 0}},
            "driver linux, options.allocation_ratios.VCPU: expected a number > 0.0, got 0",
        ),
        (
            {"allocation_ratios": 4},
            "driver linux, options.allocation_ratios: expected a mapping, got 4",
        ),
        (
            {"placements": []},
            "driver linux, options.placements: expected a mapping of consumers, got []",
        ),
        (
            {"placements": {GUEST: []}},
            f"driver linux, options.placements: {GUEST} needs a list of NUMA nodes, or a mapping "
            f"of "
            f"them to numbers of CPUs, not []",
        ),
        (
            {"placements": {"web1": [0]}},
            "driver linux, options.placements: 'web1' is not the uuid of a consumer",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_sentence(said: dict[str, Any], sentence: str) -> None:
    """It names the place, the value, and what would be valid."""
    with pytest.raises(BadConfiguration) as refused:
        read_options(said)
    assert str(refused.value) == sentence


def test_all_faults_are_told_at_once() -> None:
    """So that the operator does not repair one after the other."""
    with pytest.raises(BadConfiguration) as refused:
        read_options({"model": 1, "pci": [{}, {"device": "x"}], "disk": "here"})
    assert [fault.partition(":")[0] for fault in refused.value.faults] == [
        "driver linux, options.model",
        "driver linux, options.pci[0]",
        "driver linux, options.pci[1].device",
        "driver linux, options.disk",
    ]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"cpu_shared": "0-7,77"},
            "cpu_shared names CPU 77, but the host has CPUs 0-9",
        ),
        ({"disk": "/no/such"}, "options.disk: cannot read /no/such: No such file"),
    ],
)
def test_what_the_host_does_not_have_is_told(
    tmp_path: Path, said: dict[str, Any], sentence: str
) -> None:
    """When the host is read."""
    SPARSE.write(tmp_path)
    host = LinuxDriver(read_options({"root": str(tmp_path), **said}))
    with pytest.raises(BadConfiguration, match=sentence):
        hosts.report(host, hosts.empty_tree())


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            [{"address": "0000:af:*"}],
            "pci: 0000:af:00.0 and its virtual function 0000:af:02.0 are both offered; offer one "
            "or the other; "
            "pci: 0000:af:00.1 and its virtual function 0000:af:0a.0 are both offered; offer one "
            "or the other",
        ),
        (
            [
                {"address": "0000:af:02.1", "traits": ["CUSTOM_GOLD"]},
                {"functions_of": "0000:af:00.0"},
            ],
            "pci: the virtual functions of 0000:af:00.0 are offered as different things; give "
            "them all the same resource class and traits",
        ),
    ],
)
def test_functions_that_cannot_be_given_out_together_are_refused(
    tmp_path: Path, rules: list[dict[str, Any]], sentence: str
) -> None:
    """A guest that gets a port has its functions too; the functions of a port are counted
    together."""
    host = hosts.driver(SRIOV_HOST, tmp_path, pci=rules)
    with pytest.raises(BadConfiguration) as refused:
        hosts.report(host, hosts.empty_tree())
    assert str(refused.value) == sentence


def test_every_option_is_on_the_page_and_its_example_is_valid() -> None:
    """docs/hosts-linux.md describes exactly the options that exist."""
    page = (DOCS / "hosts-linux.md").read_text()
    (example,) = blocks(page, "yaml")
    assert read_options(yaml.safe_load(example.text)["options"]).model is Model.NUMA
    table = page.partition("## Options")[2].partition("A rule of `pci`")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {*Options.__struct_fields__}
