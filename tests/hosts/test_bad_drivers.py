# SPDX-License-Identifier: Apache-2.0
"""Drivers that return invalid trees: the error names every fault, and nothing is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
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
CN1, CN2, NUMA0, NFS = map(provider_uuid, ("cn1", "cn2", "numa0", "nfs"))

Edit = Callable[[ProviderTree, Allocations], object]


SERVICES = ["berth"]


@dataclass
class Nonsense:
    """A driver that edits the tree and the allocations."""

    edit: Edit
    moves: bool = True

    def update_provider_tree(
        self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
    ) -> None:
        """Request the allocations, and edit."""
        if self.moves and allocations is None:
            raise ReshapeNeeded
        self.edit(provider_tree, allocations or {})


def record(**fields: object) -> Edit:
    """Give the root an inventory record with these fields."""
    return lambda tree, _: tree.update_inventory("cn1", {"VCPU": fields})


def held(consumer: str, provider: str, resources: object) -> Edit:
    """Set a consumer's allocations on a provider."""

    def edit(tree: ProviderTree, allocations: Allocations) -> None:
        allocations[consumer]["allocations"][provider] = {"resources": resources}

    return edit


def in_turn(*edits: Edit) -> Edit:
    """Several edits, in this order."""

    def edit(tree: ProviderTree, allocations: Allocations) -> None:
        for each in edits:
            each(tree, allocations)

    return edit


NONSENSE: dict[str, tuple[Edit, str]] = {
    "a negative total": (record(total=-1), "cn1, VCPU: total is -1, and must be a whole number"),
    "a total of nothing": (record(total=0), "from 1 to 2147483647"),
    "a total that is a truth": (record(total=True), "cn1, VCPU: total is True"),
    "a total that is text": (record(total="8"), "cn1, VCPU: total is '8'"),
    "a total that is a fraction": (record(total=9.0), "cn1, VCPU: total is 9.0"),
    "no total": (record(total=None), "cn1, VCPU: total is None"),
    "a total that is too large": (record(total=1 << 31), "cn1, VCPU: total is 2147483648"),
    "more reserved than there is": (
        record(total=4, reserved=5),
        "cn1, VCPU: reserved is 5, and must be at most the total of 4",
    ),
    "the least above the most": (
        record(total=4, min_unit=3, max_unit=2),
        "min_unit is 3, and must be at most max_unit, which is 2",
    ),
    "a ratio that is no number": (record(total=4, allocation_ratio=float("nan")), "ratio is nan"),
    "a ratio without end": (record(total=4, allocation_ratio=float("inf")), "is inf, and must be"),
    "a ratio of nothing": (record(total=4, allocation_ratio=0), "must be a number above 0"),
    "a huge ratio": (record(total=4, allocation_ratio=10**400), "and at most 3.40282e"),
    "a field that is none": (record(total=4, ratio=1.0), "unknown field 'ratio'"),
    "a class that is no name": (
        lambda tree, _: tree.update_inventory("cn1", {"vcpu": {"total": 1}}),
        "cn1 has inventory of 'vcpu', which is not a resource class; names have capital letters",
    ),
    "a class that is too long": (
        lambda tree, _: tree.update_inventory("cn1", {"CUSTOM_" + "A" * 249: {"total": 1}}),
        "at most 255",
    ),
    "a class that looks like a standard one": (
        lambda tree, _: tree.update_inventory("agent", {"WARP_CORE": {"total": 1}}),
        "does not know the resource class WARP_CORE: it is older than this program, or the name "
        "of the class must begin with CUSTOM_",
    ),
    "a trait in small letters": (
        lambda tree, _: tree.add_traits("numa0", "hw_nic_sriov"),
        "numa0 has 'hw_nic_sriov', which is not a trait; names have capital letters",
    ),
    "a trait that is none": (
        lambda tree, _: tree.add_traits("numa0", 7),  # type: ignore[arg-type]
        "numa0 has 7, which is not a trait",
    ),
    "an aggregate that is no uuid": (
        lambda tree, _: tree.add_aggregates("numa0", "rack 7"),
        "numa0 is in 'rack 7', which is not an aggregate; a uuid looks like",
    ),
    "a uuid that is none": (
        lambda tree, _: tree.new_child("gpu", "cn1", "0000:84:00.0"),
        "gpu has uuid '0000:84:00.0', which is not one; a uuid looks like",
    ),
    "a uuid in capital letters": (
        lambda tree, _: tree.new_child("gpu", "cn1", aggregate_uuid("B").upper()),
        "which is not one; a uuid looks like",
    ),
    "a name that is too long": (
        lambda tree, _: tree.new_child("n" * 201, "cn1"),
        "has 201 characters; 1 to 200 are allowed",
    ),
    "no name": (lambda tree, _: tree.new_child("", "cn1"), "has 0 characters"),
    "a name with a line break": (
        lambda tree, _: tree.new_child("a\nb", "cn1"),
        "has unprintable characters",
    ),
    "a name of another tree": (
        lambda tree, _: tree.new_child("cn2", "cn1"),
        f"the name cn2 is that of provider {CN2} of another tree",
    ),
    "a name given anew": (
        in_turn(
            lambda tree, _: tree.remove("agent"),
            lambda tree, _: tree.new_child("agent", "cn1", aggregate_uuid("B")),
        ),
        "agent is the name of provider .* in the service",
    ),
    "the name of one that moves as well": (
        in_turn(
            lambda tree, _: tree.rename("agent", "agent2"),
            lambda tree, _: tree.move("agent2", "numa0"),
            lambda tree, _: tree.new_child("agent", "cn1", aggregate_uuid("B")),
        ),
        "agent is the name of provider .* in the service",
    ),
    "two names that are swapped": (
        in_turn(
            lambda tree, _: tree.rename("agent", "other"),
            lambda tree, _: tree.rename("numa0", "agent"),
            lambda tree, _: tree.rename("other", "numa0"),
        ),
        "agent is the name of provider .* in the service",
    ),
    "no root": (lambda tree, _: tree.remove("cn1"), "the tree has lost its root cn1"),
    "the root under another": (
        lambda tree, _: tree.move("cn1", "nfs"),
        "the root cn1 cannot be put under another provider",
    ),
    "a child that leaves": (
        lambda tree, _: tree.move("numa0", None),
        "numa0 has left the tree of cn1; move it back, or remove it",
    ),
    "a root besides": (
        lambda tree, _: tree.new_root("cn7", provider_uuid("cn7")),
        "cn7 is not in the tree of cn1, so its changes would not be sent",
    ),
    "what others share": (
        lambda tree, _: tree.update_inventory("nfs", {}),
        "nfs is not in the tree of cn1, so its changes would not be sent",
    ),
    "what others share, taken": (lambda tree, _: tree.move("nfs", "cn1"), "nfs is in another tree"),
    "a child in use that goes": (
        lambda tree, _: tree.remove("numa0"),
        f"numa0 would be deleted with 512 MEMORY_MB allocated on it: by consumer {I2} 512",
    ),
    "a class in use that goes": (
        lambda tree, _: tree.update_inventory("cn1", {}),
        f"cn1 has no VCPU, but 2 would be allocated: by consumer {I1} 2",
    ),
    "amounts that do not add up": (
        held(I1, CN1, {"VCPU": 3}),
        f"consumer {I1} holds 2 VCPU and would have 3",
    ),
    "an amount that is text": (held(I1, CN1, {"VCPU": "2"}), "is to have '2' VCPU"),
    "a negative amount": (held(I1, CN1, {"VCPU": -2}), "is to have -2 VCPU"),
    "resources that are none": (held(I1, CN1, None), "must have resources by resource class"),
    "allocations that are none": (
        lambda _, allocations: allocations.update({I1: {}}),
        f"consumer {I1} has {{}}, and must have allocations by provider",
    ),
    "what is held elsewhere": (
        in_turn(held(I2, CN2, {}), held(I2, CN1, {"VCPU": 1})),
        f"consumer {I2} holds 1 VCPU of {CN2}, which is not in this tree, and would have 0",
    ),
    "a consumer who is missing": (
        lambda _, allocations: allocations.pop(I1),
        f"consumer {I1} is missing from the allocations",
    ),
    "a consumer who is new": (
        lambda _, allocations: allocations.update({CN1: allocations[I1]}),
        f"consumer {CN1} has no allocations in the tree, and cannot get any",
    ),
    "no room": (
        in_turn(
            lambda tree, _: tree.update_inventory("numa0", {"VCPU": {"total": 1}}),
            held(I1, CN1, {}),
            held(I1, NUMA0, {"VCPU": 2}),
        ),
        "numa0 has 1 VCPU, but 2 are needed",
    ),
    "too much at once": (
        in_turn(
            lambda tree, _: tree.new_child("numa1", "cn1", aggregate_uuid("B")),
            lambda tree, _: tree.update_inventory("numa1", {"VCPU": {"total": 4, "max_unit": 1}}),
            held(I1, CN1, {}),
            held(I1, aggregate_uuid("B"), {"VCPU": 2}),
        ),
        "would have 2 VCPU of numa1, where one consumer may have 1 to 1 in steps of 1",
    ),
}


@pytest.mark.parametrize("kind", NONSENSE)
def test_nonsense_is_told_and_not_sent(stage: Stage, kind: str) -> None:
    """It names the provider or consumer, the fault, and what would be valid, beside another
    fault."""
    stage.show(WORLD)
    edit, told = NONSENSE[kind]
    client = ReportClient(stage.transport)
    with pytest.raises(BadProviderTree) as refused:
        start(client, Nonsense(edit))
    assert any(re.search(told, fault) for fault in refused.value.faults), refused.value
    assert set(client.service.requests) == {"GET"}
    assert stage.picture() == drawn(WORLD)


def test_all_that_is_wrong_is_told_at_once(stage: Stage) -> None:
    """So that the author can repair everything in one go."""
    stage.show(WORLD)
    edits = [NONSENSE[kind][0] for kind in ("a negative total", "a trait in small letters")]
    edits += [NONSENSE[kind][0] for kind in ("what is held elsewhere", "a root besides")]
    with pytest.raises(BadProviderTree) as refused:
        start(ReportClient(stage.transport), Nonsense(in_turn(*edits)))
    assert len(refused.value.faults) == 5, "what is held elsewhere changes two sums"


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda tree, _: tree.new_child("gpu", "nobody"), "No such provider nobody"),
        (lambda tree, _: tree.new_child("numa0", "cn1"), "The name numa0 is that of provider"),
        (lambda tree, _: tree.move("cn1", "numa0"), "cannot be moved below numa0"),
        (lambda tree, _: 1 // 0, "division"),
    ],
    ids=["an unknown parent", "a name twice", "a circle", "a mistake"],
)
def test_an_error_in_a_driver_is_its_own(stage: Stage, edit: Edit, told: str) -> None:
    """It is raised unchanged, and nothing is sent."""
    stage.show(WORLD)
    client = ReportClient(stage.transport)
    with pytest.raises((ValueError, ArithmeticError), match=told):
        start(client, Nonsense(in_turn(lambda tree, _: tree.remove("agent"), edit)))
    assert set(client.service.requests) == {"GET"}


def test_what_is_held_is_not_taken_away_later_either(stage: Stage) -> None:
    """Without a reshape, the client checks with the service before it writes anything else."""
    stage.show(WORLD)
    client = ReportClient(stage.transport)
    edit = in_turn(
        lambda tree, _: tree.new_child("gpu", "cn1"), lambda tree, _: tree.remove("numa0")
    )
    with pytest.raises(BadProviderTree, match="numa0 would lose its MEMORY_MB, of which 512 are"):
        start(client, Nonsense(edit, moves=False))
    assert client.service.requests["PUT"] == 1, "of the whole tree, and refused"
    assert stage.picture() == drawn(WORLD)


def test_a_provider_made_anew_is_the_one_that_was_there(stage: Stage) -> None:
    """A provider object without a generation uses the one that was read."""
    stage.show(WORLD)

    def edit(tree: ProviderTree, allocations: Allocations) -> None:
        tree.remove("agent")
        tree.new_child("agent", "numa0", provider_uuid("agent"))
        tree.update_inventory("agent", {"CUSTOM_PGPU": {"total": 4}})

    start(ReportClient(stage.transport), Nonsense(edit, moves=False))
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


def swap(tree: ProviderTree, allocations: Allocations, arguments: tuple[Any, ...]) -> None:
    """Move whatever can be moved."""
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

    def edit(tree: ProviderTree, allocations: Allocations) -> None:
        for step in steps:
            try:
                getattr(tree, step[0])(*step[1:])
            except ValueError:
                continue
        for arguments in swaps if allocations else ():
            if tree.exists(arguments[1]) and tree.exists(arguments[2]):
                swap(tree, allocations, arguments)

    client = ReportClient(AsPlacement(stage.transport, is_one=is_placement))
    try:
        start(client, Nonsense(edit, moves))
        event("let through")
    except (BadProviderTree, NameTaken) as refused:
        event(str(refused)[:60])
        if is_placement:
            assert set(client.service.requests) == {"GET"}
        assert stage.picture() == drawn(WORLD)
    finally:
        stage.clear()
