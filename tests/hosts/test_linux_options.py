# SPDX-License-Identifier: Apache-2.0
"""What an operator says of a host: values, and one sentence for each thing that cannot be meant."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.hosts.drivers.hosts.options import HugePages, MdevRule, Model, PCIRule
from berth.hosts.drivers.linux import LinuxDriver, Options
from berth.hosts.drivers.linux.options import read_options
from berth.hosts.errors import BadConfiguration
from tests.docs.pages import DOCS, blocks
from tests.hosts import linux_hosts as hosts
from tests.hosts.machines import SPARSE, SRIOV_HOST

GUEST = "9a4a6b8e-0c7d-4e62-8f0a-0d1c2b3a4f50"
ANOTHER = "9a4a6b8e-0c7d-4e62-8f0a-0d1c2b3a4f51"


def test_nothing_said_is_everything_at_its_default() -> None:
    """This host, flat, all of it."""
    assert read_options({}) == Options()


def test_everything_that_can_be_said_is_read() -> None:
    """Names in whatever case become traits and classes, addresses are compared in lower case."""
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
        "reserved": {"VCPU": 1},
        "allocation_ratios": {"VCPU": 4},
        "placements": {GUEST.upper(): {0: 4, 1: 2}, ANOTHER: [1]},
    }
    assert read_options(said) == Options(
        root=Path("/host"),
        model=Model.NUMA,
        cpu_shared=frozenset({0, 1, 2, 3}),
        cpu_dedicated=frozenset({4}),
        huge_pages=HugePages.PROVIDERS,
        disk=None,
        pci=(
            PCIRule(
                device=("8086", "154c"),
                functions_of="0000:af:00.0",
                resource_class="SRIOV_NET_VF",
                traits=frozenset({"HW_NIC_SRIOV_TRUSTED", "CUSTOM_GOLD", "CUSTOM_MY_RACK"}),
                physical_network="phys1",
            ),
            PCIRule(address="0000:3b:*"),
        ),
        mdev=(
            MdevRule("nvidia-35", frozenset({"pci_0000_84_00_0"}), "CUSTOM_VGPU_A"),
            MdevRule("nvidia-36", traits=frozenset({"CUSTOM_BIG"}), instances_max=4),
        ),
        nvml=False,
        reserved={"VCPU": 1},
        allocation_ratios={"VCPU": 4.0},
        placements={GUEST: {0: 4, 1: 2}, ANOTHER: {1: 1}},
    )


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"modle": "flat"},
            "The linux driver has no option 'modle'; there are allocation_ratios, cpu_dedicated, "
            "cpu_shared, disk, huge_pages, mdev, model, nvml, pci, placements, reserved, root",
        ),
        ({"model": "tree"}, "The linux driver, model: 'tree' must be one of flat, numa"),
        (
            {"cpu_shared": "3-0"},
            "The linux driver, cpu_shared: '3-0' must be a list of CPUs such as 0-3,8",
        ),
        (
            {"cpu_shared": "^0-1"},
            "The linux driver, cpu_shared: '^0-1' names no CPU; leave it out where none is meant",
        ),
        (
            {"cpu_shared": "0-3", "cpu_dedicated": "2-4"},
            "The linux driver, cpu_shared and cpu_dedicated both name CPU 2, 3",
        ),
        ({"root": "host"}, "The linux driver, root: 'host' must be a path from /"),
        ({"nvml": "no"}, "The linux driver, nvml: 'no' must be true or false"),
        ({"pci": {}}, "The linux driver, pci: {} must be a list"),
        ({"pci": ["x"]}, "pci 1: 'x' must be a mapping"),
        (
            {"pci": [{"address": "0000:81:00.0"}, {"traits": []}]},
            "pci 2: device, address or functions_of must say which devices are meant",
        ),
        (
            {"pci": [{"device": 8086}]},
            "pci 1, device: 8086 must be text; put it into quotes",
        ),
        (
            {"pci": [{"functions_of": "81:00.0"}]},
            "pci 1, functions_of: '81:00.0' must be a PCI address such as 0000:81:00.0",
        ),
        (
            {"pci": [{"address": "eth0"}]},
            "pci 1, address: 'eth0' must be a PCI address such as 0000:81:00.0, or one with * and "
            "? in it",
        ),
        (
            {"pci": [{"device": "8086"}]},
            "pci 1, device: '8086' must be vendor and product such as 8086:1572",
        ),
        (
            {"mdev": [{"type": "a", "resource_class": "GPU"}]},
            "mdev 1, resource_class: 'GPU' must be a standard resource class, or one that begins "
            "with CUSTOM_",
        ),
        ({"mdev": [{}]}, "mdev 1: type must say which type of mediated devices is meant"),
        ({"mdev": [{"type": "a", "traits": "x"}]}, "mdev 1, traits: 'x' must be a list"),
        (
            {"mdev": [{"type": "a"}, {"type": "b"}]},
            "The linux driver, mdev: of the types a, b all but one must name their parents",
        ),
        (
            {"mdev": [{"type": "a", "parents": ["x"]}, {"type": "b", "parents": ["x"]}]},
            "The linux driver, mdev: x cannot be of both types a and b",
        ),
        (
            {"reserved": {"VGPU": 1}},
            "The linux driver, reserved: {'VGPU': 1} has 'VGPU'; there are VCPU, PCPU, MEMORY_MB, "
            "DISK_GB",
        ),
        (
            {"reserved": {"VCPU": -1}},
            "The linux driver, reserved: {'VCPU': -1} has no whole number from 0 for VCPU",
        ),
        (
            {"allocation_ratios": {"VCPU": 0}},
            "The linux driver, allocation_ratios: {'VCPU': 0} has no number above 0 for VCPU",
        ),
        (
            {"allocation_ratios": 4},
            "The linux driver, allocation_ratios: 4 must be a mapping of resource classes",
        ),
        ({"placements": []}, "The linux driver, placements: [] must be a mapping of consumers"),
        (
            {"placements": {GUEST: []}},
            f"The linux driver, placements: {{'{GUEST}': []}} has [], where a list of NUMA nodes "
            f"must stand, or how many CPUs are on each",
        ),
        (
            {"placements": {"web1": [0]}},
            "The linux driver, placements: {'web1': [0]} has 'web1', where the uuid of a consumer "
            "must stand",
        ),
    ],
)
def test_what_cannot_be_meant_is_told_in_a_sentence(said: dict[str, Any], sentence: str) -> None:
    """It names the place, what stands there, and what can."""
    with pytest.raises(BadConfiguration) as refused:
        read_options(said)
    assert str(refused.value) == sentence


def test_all_faults_are_told_at_once() -> None:
    """So that nobody mends one after the other."""
    with pytest.raises(BadConfiguration) as refused:
        read_options({"model": 1, "pci": [{}, {"device": "x"}], "disk": "here"})
    assert [fault.partition(":")[0] for fault in refused.value.faults] == [
        "The linux driver, model",
        "pci 1",
        "pci 2, device",
        "The linux driver, disk",
    ]


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        (
            {"cpu_shared": "0-7,77"},
            "cpu_shared names CPU 77, and the host has the CPUs 0-9",
        ),
        ({"disk": "/no/such"}, "disk names /no/such, which cannot be read: No such file"),
    ],
)
def test_what_the_host_does_not_have_is_told(
    tmp_path: Path, said: dict[str, Any], sentence: str
) -> None:
    """It is seen when the host is looked at."""
    SPARSE.write(tmp_path)
    host = LinuxDriver(read_options({"root": str(tmp_path), **said}))
    with pytest.raises(BadConfiguration, match=sentence):
        hosts.report(host, hosts.empty_tree())


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (
            [{"address": "0000:af:*"}],
            "pci: 0000:af:00.0 and its virtual function 0000:af:02.0 are both given out; give out "
            "one or the other; "
            "pci: 0000:af:00.1 and its virtual function 0000:af:0a.0 are both given out; give out "
            "one or the other",
        ),
        (
            [
                {"address": "0000:af:02.1", "traits": ["CUSTOM_GOLD"]},
                {"functions_of": "0000:af:00.0"},
            ],
            "pci: the virtual functions of 0000:af:00.0 are given out as different things; one "
            "resource class and one set of traits must do for all of them",
        ),
    ],
)
def test_functions_that_cannot_be_given_out_together_are_refused(
    tmp_path: Path, rules: list[dict[str, Any]], sentence: str
) -> None:
    """Whoever gets a port has its functions as well; functions of a port are counted together."""
    host = hosts.driver(SRIOV_HOST, tmp_path, pci=rules)
    with pytest.raises(BadConfiguration) as refused:
        hosts.report(host, hosts.empty_tree())
    assert str(refused.value) == sentence


def test_every_option_is_on_the_page_and_its_example_is_valid() -> None:
    """docs/hosts-linux.md tells operators all that they can say, and of no more."""
    page = (DOCS / "hosts-linux.md").read_text()
    (example,) = blocks(page, "yaml")
    assert read_options(yaml.safe_load(example.text)["options"]).model is Model.NUMA
    table = page.partition("## Options")[2].partition("A rule of `pci`")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {
        field.name for field in fields(Options)
    }
