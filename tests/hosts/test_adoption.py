# SPDX-License-Identifier: Apache-2.0
"""A host whose name is taken by another provider: scenario L of spec/compute-side.md 8."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from random import Random

import pytest

from berth.hosts.adoption import NodeNameTaken, take_over
from berth.hosts.agent import Agent, Orders, Woken
from berth.hosts.agent_config import AgentConfig, read_agent_config
from berth.hosts.errors import BadConfiguration, BadProviderTree
from berth.hosts.report_client import ReportClient
from tests.hosts.drivers import GPUHost
from tests.hosts.hosts import tracker
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import provider_uuid

OLD = provider_uuid("cn9")
NEW = provider_uuid("new")


SERVICES = ["berth"]


def configured(folder: Path, text: str) -> AgentConfig:
    """The configuration of an agent that already has a uuid for the host."""
    (folder / "node-uuid").write_text(f"{NEW}\n")
    path = folder / "agent.yaml"
    path.write_text(f"{text}\nstate_dir: {folder}\n")
    return read_agent_config(path)


def started(stage: Stage, config: AgentConfig) -> Agent:
    """An agent after its start."""
    client = ReportClient(stage.transport)
    made = Agent(
        lambda: Orders(
            tracker(client, GPUHost({"84": 4})),
            config.nodes(),
            interval_s=60,
            start_patience_s=0,
            take_over=partial(
                take_over, client.service, keep=config.keep if config.adopt else None
            ),
        ),
        wait=lambda seconds: Woken.TO_STOP,
        clock=lambda: 0.0,
        now=lambda: 0.0,
        rng=Random(1),
    )
    made.start()
    return made


def test_a_host_goes_on_as_it_was_known(stage: Stage, tmp_path: Path) -> None:
    """If the configuration allows it, the host takes over the uuid of that provider and reports
    under it from then on."""
    stage.show("""
        cn9  VCPU=8
          cn9_pci_85  VGPU=2  CUSTOM_OWNER_BERTH
    """)
    config = configured(tmp_path, "node: {name: cn9}\nadopt: true")
    agent = started(stage, config)
    assert [node.uuid for node in agent.orders.nodes] == [OLD]
    assert stage.picture() == drawn("""
        cn9  VCPU=8
          cn9_pci_84  VGPU=4(max:4)  CUSTOM_OWNER_BERTH
          cn9_pci_85  VGPU=2  CUSTOM_OWNER_BERTH
    """)
    assert config.nodes()[0].uuid == OLD


def test_one_of_several_nodes_goes_on_as_it_was_known(stage: Stage, tmp_path: Path) -> None:
    """The other nodes keep their uuids."""
    stage.show("    cn9  VCPU=8")
    config = configured(tmp_path, "nodes: [{name: cn1}, {name: cn9}]\nadopt: true")
    (before, _) = config.nodes()
    started(stage, config)
    assert [node.uuid for node in config.nodes()] == [before.uuid, OLD]


TAKEN = {
    "nobody holds any": ("cn9  VCPU=8", "`berth agent run --adopt` takes it over as"),
    "somebody does": (
        "cn9  VCPU=8\n    i1: cn9 VCPU=1",
        f"{consumer_uuid('i1')} have allocations on it",
    ),
    "on a child": (
        "cn9\n      cn9_pci_85  VGPU=2  CUSTOM_OWNER_BERTH\n    i1: cn9_pci_85 VGPU=1",
        f"with 1 below it; this host is {NEW}. It is not taken over automatically",
    ),
    "others have inventory below": (
        "cn9  VCPU=8\n      agent\n        bridge  NET_BW_EGR_KILOBIT_PER_SEC=1000",
        "bridge below it belong to other agents. If it is this host, reinstalled, set uuid: ",
    ),
    "it is no host": ("cn1\n      cn9  VGPU=1", f"a child of {provider_uuid('cn1')}"),
    "the service knows both": (
        "cn9  VCPU=8\n    new  VCPU=4",
        "has a provider with this host's own UUID",
    ),
}


@pytest.mark.parametrize("case", TAKEN)
def test_what_is_not_taken_over_is_explained(stage: Stage, tmp_path: Path, case: str) -> None:
    """The error says which provider has the name and what to do; neither the service nor the host's
    files change."""
    world, says = TAKEN[case]
    stage.show(f"    {world}")
    before = stage.picture()
    adopt = "false" if case == "nobody holds any" else "true"
    config = configured(tmp_path, f"node: {{name: cn9}}\nadopt: {adopt}")
    with pytest.raises(NodeNameTaken, match="The name cn9 is taken") as refused:
        started(stage, config)
    assert OLD in str(refused.value) and says in str(refused.value)
    assert stage.picture() == before
    assert config.nodes()[0].uuid == NEW


def test_a_uuid_in_the_configuration_is_not_overruled(stage: Stage, tmp_path: Path) -> None:
    """The operator has to change it."""
    stage.show("    cn9  VCPU=8")
    config = configured(tmp_path, f"node: {{name: cn9, uuid: {NEW}}}\nadopt: true")
    with pytest.raises(BadConfiguration, match=rf"node\.uuid: must be {OLD}, or left out"):
        started(stage, config)


def test_another_name_that_is_taken_is_another_fault(stage: Stage, tmp_path: Path) -> None:
    """The name of a child may be taken by a provider of another host."""
    stage.show("""
        cn2
          cn9_pci_84
    """)
    with pytest.raises(BadProviderTree, match="cn9_pci_84"):
        started(stage, configured(tmp_path, "node: {name: cn9}\nadopt: true"))
