# SPDX-License-Identifier: Apache-2.0
"""Drivers that return invalid trees: the error names every fault, and nothing is sent."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from berth.hosts import BadProviderTree, ReshapeNeeded
from berth.hosts.errors import NameTaken
from berth.hosts.plan import Allocations
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from tests.effort import scaled
from tests.hosts.hosts import AsPlacement, start
from tests.hosts.stage import Stage, consumer_uuid, drawn
from tests.worlds import aggregate_uuid, provider_uuid

WORLD = """
    cn1  VCPU=8(reserved:1)  COMPUTE_NODE  @A
      numa0  MEMORY_MB=1024  CUSTOM_PGPU=2
      agent  CUSTOM_VNIC_TYPE_NORMAL
    cn2  VCPU=8
    nfs  DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @A
    i1: cn1 VCPU=2, nfs DISK_GB=10
    i2: numa0 MEMORY_MB=512, cn2 VCPU=1
"""

I1, I2 = consumer_uuid("i1"), consumer_uuid("i2")
CN1, CN2 = map(provider_uuid, ("cn1", "cn2"))

#: A method of the tree, or `held` or `lost`, with its arguments.
Steps = list[list[Any]]

SERVICES = ["berth"]

_NAMES = {
    **{name: consumer_uuid(name) for name in ("i1", "i2")},
    **{name: provider_uuid(name) for name in ("cn1", "cn2", "cn7", "numa0")},
    "B": aggregate_uuid("B"),
}


def read_rows() -> list[tuple[Steps, str]]:
    """Steps, and what they are told, with uuids for names."""
    text = Path(__file__).with_name("nonsense.yaml").read_text()
    text = re.sub(r"<(\w) (\d+)>", lambda long: long[1] * int(long[2]), text)
    text = re.sub(r"<(\w+)>", lambda name: _NAMES.get(name[1], name[0]), text)
    rows: list[tuple[Steps, str]] = yaml.safe_load(text)
    return rows


@dataclass
class Nonsense:
    """A driver that edits the tree and the allocations."""

    steps: Steps
    moves: bool = True

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Request the allocations, and edit."""
        if self.moves and allocations is None:
            raise ReshapeNeeded
        for name, *arguments in self.steps:
            self.edit(provider_tree, allocations or {}, name, *arguments)

    def edit(
        self, tree: ProviderTree, allocations: Allocations, name: str, *arguments: Any
    ) -> None:
        if name == "held":
            consumer, provider, resources = arguments
            if provider is None:
                allocations[consumer] = {}
            else:
                body = allocations.setdefault(consumer, {"allocations": {}})
                body["allocations"][provider] = {"resources": resources}
        elif name == "lost":
            del allocations[arguments[0]]
        else:
            getattr(tree, name)(*arguments)


@pytest.mark.parametrize(("steps", "told"), read_rows())
def test_nonsense_is_told_and_not_sent(stage: Stage, steps: Steps, told: str) -> None:
    """It names the provider or consumer, the fault, and what would be valid, beside another
    fault."""
    stage.show(WORLD)
    client = ReportClient(stage.transport)
    with pytest.raises(BadProviderTree) as refused:
        start(client, Nonsense(steps))
    assert any(re.search(told, fault) for fault in refused.value.faults), refused.value
    assert set(client.service.requests) == {"GET"}
    assert stage.picture() == drawn(WORLD)


def test_all_that_is_wrong_is_told_at_once(stage: Stage) -> None:
    """So that the author can repair everything in one go."""
    stage.show(WORLD)
    steps: Steps = [
        ["update_inventory", "cn1", {"VCPU": {"total": -1}}],
        ["add_traits", "numa0", "hw_nic_sriov"],
        ["held", I2, CN2, {}],
        ["held", I2, CN1, {"VCPU": 1}],
        ["new_root", "cn7", provider_uuid("cn7")],
    ]
    with pytest.raises(BadProviderTree) as refused:
        start(ReportClient(stage.transport), Nonsense(steps))
    assert len(refused.value.faults) == 5, "what is held elsewhere changes two sums"


@pytest.mark.parametrize(
    ("step", "told"),
    [
        (["new_child", "gpu", "nobody"], "No such provider nobody"),
        (["new_child", "numa0", "cn1"], "The name numa0 is that of provider"),
        (["move", "cn1", "numa0"], "cannot be moved below numa0"),
        (["new_root", "cn9", None], "cn9 needs a uuid"),
        (["no_such_method"], "no_such_method"),
    ],
)
def test_an_error_in_a_driver_is_its_own(stage: Stage, step: list[Any], told: str) -> None:
    """It is raised unchanged, and nothing is sent."""
    stage.show(WORLD)
    client = ReportClient(stage.transport)
    with pytest.raises((ValueError, AttributeError), match=told):
        start(client, Nonsense([["remove", "agent"], step]))
    assert set(client.service.requests) == {"GET"}


def test_what_is_held_is_not_taken_away_later_either(stage: Stage) -> None:
    """Without a reshape, the client checks with the service before it writes anything else."""
    stage.show(WORLD)
    client = ReportClient(stage.transport)
    steps: Steps = [["new_child", "gpu", "cn1"], ["remove", "numa0"]]
    with pytest.raises(BadProviderTree, match="numa0 would lose its MEMORY_MB, of which 512 are"):
        start(client, Nonsense(steps, moves=False))
    assert client.service.requests["PUT"] == 1, "of the whole tree, and refused"
    assert stage.picture() == drawn(WORLD)


def test_a_provider_made_anew_is_the_one_that_was_there(stage: Stage) -> None:
    """A provider object without a generation uses the one that was read."""
    stage.show(WORLD)

    steps: Steps = [
        ["remove", "agent"],
        ["new_child", "agent", "numa0", provider_uuid("agent")],
        ["update_inventory", "agent", {"CUSTOM_PGPU": {"total": 4}}],
    ]
    start(ReportClient(stage.transport), Nonsense(steps, moves=False))
    assert stage.picture() == drawn(
        WORLD.replace("    agent  CUSTOM_VNIC_TYPE_NORMAL", "      agent  CUSTOM_PGPU=4")
    )


# --- Whatever is let through, the service takes ---------------------------------------------------

SOME = st.sampled_from(["cn1", "numa0", "agent", "a", "b", "c"])
NAMES = SOME | st.sampled_from(["cn2", "nfs", "x" * 200])
CLASSES = st.sampled_from(["VCPU", "MEMORY_MB", "PGPU", "CUSTOM_PGPU", "CUSTOM_NEW", "WARP"])
NUMBERS = st.sampled_from([1, 2, 3, 8, 512, 1024, (1 << 31) - 1]) | st.sampled_from([0, 1 << 31])
RATIOS = st.sampled_from([1, 1.0, 16.5, 1e-9, 1e-320, 3e38, 1e39])
RECORDS = st.fixed_dictionaries(
    {"total": NUMBERS},
    optional={
        **dict.fromkeys(("reserved", "min_unit", "max_unit", "step_size"), NUMBERS),
        "allocation_ratio": RATIOS,
    },
)
TRAITS = st.sampled_from(["CUSTOM_T", "HW_CPU_X86_AVX2", "HW_NOT_THERE", "CUSTOM_VNIC_TYPE_NORMAL"])
AGGREGATES = st.sampled_from([aggregate_uuid("A"), aggregate_uuid("B")])
STEPS = st.one_of(
    st.tuples(st.just("new_child"), NAMES, SOME),
    st.tuples(st.just("remove"), SOME),
    st.tuples(st.just("rename"), SOME, NAMES),
    st.tuples(st.just("move"), SOME, st.none() | SOME),
    st.tuples(st.just("update_inventory"), SOME, st.dictionaries(CLASSES, RECORDS, max_size=2)),
    st.tuples(st.just("add_traits"), SOME, TRAITS),
    st.tuples(st.just("remove_traits"), SOME, TRAITS),
    st.tuples(st.just("add_aggregates"), SOME, AGGREGATES),
)
#: A consumer gives some of a class of one provider for some of another.
SWAPS = st.tuples(st.sampled_from([I1, I2]), SOME, SOME, CLASSES, CLASSES, st.integers(1, 600))


class Anything(Nonsense):
    """A driver that does what is possible of its steps, and moves what can be moved."""

    def edit(
        self, tree: ProviderTree, allocations: Allocations, name: str, *arguments: Any
    ) -> None:
        if name != "swap":
            with suppress(ValueError):
                super().edit(tree, allocations, name, *arguments)
        elif allocations and tree.exists(arguments[1]) and tree.exists(arguments[2]):
            consumer, source, target, old, new, amount = arguments
            parts = allocations[consumer]["allocations"]
            part = parts.get(tree.data(source).uuid, {"resources": {}})["resources"]
            if moved := min(amount, part.get(old, 0)):
                part[old] -= moved
                if not part[old]:
                    del part[old]
                resources = parts.setdefault(tree.data(target).uuid, {"resources": {}})["resources"]
                resources[new] = resources.get(new, 0) + moved


@settings(
    max_examples=scaled(20),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, max_size=6), st.lists(SWAPS, max_size=2), st.booleans(), st.booleans())
def test_what_is_let_through_is_taken(
    stage: Stage,
    steps: list[tuple[Any, ...]],
    swaps: list[tuple[Any, ...]],
    moves: bool,
    is_placement: bool,
) -> None:
    """Either nothing is written, or the service accepts every request; berth, which takes whole
    trees, may refuse one."""
    stage.show(WORLD)

    client = ReportClient(AsPlacement(stage.transport, is_one=is_placement))
    try:
        every = [[*step] for step in steps] + [["swap", *swap] for swap in swaps]
        start(client, Anything(every, moves))
        event("let through")
    except (BadProviderTree, NameTaken) as refused:
        event(str(refused)[:60])
        if is_placement:
            assert set(client.service.requests) == {"GET"}
        assert stage.picture() == drawn(WORLD)
    finally:
        stage.clear()
