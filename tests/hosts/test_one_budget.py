# SPDX-License-Identifier: Apache-2.0
"""One physical thing, one budget: whatever form a card, processors or memory had at the last pass,
what is in use of it counts against the form that it has now. All pairs of forms."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest

from berth.hosts import BadProviderTree, ProviderTree, ReshapeFailed, ReshapeNeeded
from berth.hosts.drivers.linux.nvml import NVML
from berth.hosts.plan import Allocations, Moves, amounts_of, make_plan
from berth.model.inventory import Inventory
from tests.hosts.linux_hosts import FakeNVML, empty_tree, picture, report
from tests.hosts.linux_hosts import driver as linux_driver
from tests.hosts.machines import GIB, MACHINES, PCI, Machine, Node

#: By provider and class.
Amounts = Mapping[tuple[str, str], int]
NONE: Final[Amounts] = {}

TWO_SOCKETS: Final = MACHINES["plain"]


class Host:
    """A host with the options of one form."""

    def __init__(
        self, machine: Machine, root: Path, nvml: NVML | None = None, **options: Any
    ) -> None:
        self.driver = linux_driver(machine, root, nvml=nvml, disk=False, **options)

    def report(self, tree: ProviderTree, amounts: Amounts | None) -> Amounts:
        """Report as at a start; return what is in use after it. None: the usage is unknown.

        Raises:
            BadProviderTree, ReshapeFailed: the agent refuses it, and changes nothing.
        """

        def used(uuid: str) -> dict[str, int]:
            name = tree.data(uuid).name
            return {cls: amount for (of, cls), amount in (amounts or {}).items() if of == name}

        self.driver.used = None if amounts is None else used
        try:
            report(self.driver, tree)
        except ReshapeNeeded:
            self.driver.used = None
            allocations = held_of(tree, amounts or {})
            current, before = copy.deepcopy(allocations), copy.deepcopy(tree)
            report(self.driver, tree, allocations)
            root = tree.data("cn1").uuid
            make_plan(before, tree, root, current=current, moves=Moves(allocations))
            return amounts_in(tree, allocations)
        return amounts or {}


def held_of(tree: ProviderTree, amounts: Amounts) -> Allocations:
    """Allocations of several consumers for each amount."""
    parts = [
        (name, cls, min(size, amount - taken))
        for (name, cls), amount in amounts.items()
        for size in [8192 if cls == "MEMORY_MB" else 4]
        for taken in range(0, amount, size)
    ]
    return {
        f"consumer {number}": {
            "allocations": {tree.data(name).uuid: {"resources": {cls: part}}},
            "consumer_generation": 1,
        }
        for number, (name, cls, part) in enumerate(parts)
    }


def amounts_in(tree: ProviderTree, allocations: Allocations) -> Amounts:
    sums: Counter[tuple[str, str]] = Counter()
    for body in allocations.values():
        for (uuid, cls), amount in amounts_of(body).items():
            sums[tree.data(uuid).name, cls] += amount
    return sums


def free_in(tree: ProviderTree, amounts: Amounts) -> dict[tuple[str, str], int]:
    """What can still be claimed of each record."""
    free = {}
    for data in map(tree.data, tree.get_provider_uuids()):
        for cls, record in data.inventory.items():
            capacity = Inventory(**record).capacity
            free[data.name, cls] = max(0, capacity - amounts.get((data.name, cls), 0))
    return free


def first_report(host: Host) -> ProviderTree:
    """The tree of a new host."""
    tree = empty_tree()
    host.report(tree, {})
    return tree


def assert_settled(tree: ProviderTree, host: Host, amounts: Amounts, fresh: ProviderTree) -> None:
    """A second pass changes nothing, and one after the release leaves a new host."""
    once = picture(tree)
    host.report(tree, amounts)
    assert picture(tree) == once
    host.report(tree, {})
    assert picture(tree) == picture(fresh)


# --- Cards ----------------------------------------------------------------------------------------

CARD: Final = "0000:84:00.0"
FUNCTIONS: Final = {f"0000:84:00.{number}": "10de:1eb9" for number in range(4, 8)}

#: A GPU of which everything can be offered, and another that stays whole.
GPUS: Final = replace(
    TWO_SOCKETS,
    nodes={0: Node("0-1", GIB), 1: Node("2-3", GIB)},
    pci={
        CARD: PCI(
            "10de:1eb8",
            kind="030200",
            functions=FUNCTIONS,
            mdev={"nvidia-35": (0, 4), "nvidia-36": (0, 2), "nvidia-37": (0, 8)},
        ),
        "0000:85:00.0": PCI("10de:1eb9", kind="030200"),
    },
)


@dataclass
class Slices(FakeNVML):
    """NVIDIA's library with the GPU only, whole or divided."""

    profiles: tuple[str, ...] = ()

    def nvmlDeviceGetCount(self) -> int:
        return 1

    def nvmlDeviceGetMigMode(self, handle: Any) -> Any:
        return (bool(self.profiles), bool(self.profiles))

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:
        if index >= len(self.profiles):
            raise self.NVMLError("Not Found")
        return self.profiles[index]


@dataclass(frozen=True)
class Form:
    """A form of the card."""

    options: Mapping[str, Any]
    slices: tuple[str, ...] | None = None
    #: The part of the card that a unit is, if not all units are alike.
    parts: Mapping[str, Fraction] = field(default_factory=dict)

    def host(self, root: Path) -> Host:
        """The host that offers it."""
        nvml = None if self.slices is None else Slices(profiles=self.slices)
        return Host(GPUS, root, nvml, **self.options)


def whole(name: str) -> Form:
    return Form({"pci": [{"device": "10de:1eb8", "resource_class": name}]})


def functions(name: str) -> Form:
    return Form({"pci": [{"functions_of": CARD, "resource_class": name}]})


def mediated(kind: int, name: str, *parents: str) -> Form:
    """Mediated devices of the GPU, or of its virtual functions."""
    rule = {"type": f"nvidia-{kind}", "resource_class": name, "parents": list(parents or [CARD])}
    return Form({"mdev": [rule]})


SEVENTHS: Final = {f"CUSTOM_MIG_{n}G_{5 * n}GB": Fraction(n, 7) for n in (1, 2, 3, 4)}

FORMS: Final = {
    "whole": whole("PGPU"),
    "whole, renamed": whole("CUSTOM_CARD"),
    "functions": functions("SRIOV_NET_VF"),
    "functions, renamed": functions("CUSTOM_CARD"),
    "quarters": mediated(35, "VGPU"),
    "quarters, renamed": mediated(35, "CUSTOM_CARD"),
    "halves": mediated(36, "VGPU"),
    "halves, renamed": mediated(36, "CUSTOM_HALF"),
    "eighths": mediated(37, "VGPU"),
    "mediated functions": mediated(35, "VGPU", *FUNCTIONS),
    "mediated functions, renamed": mediated(35, "CUSTOM_CARD", *FUNCTIONS),
    "NVML": Form({}, ()),
    "equal slices": Form({}, ("1g.5gb",) * 7, SEVENTHS),
    "slices": Form({}, ("4g.20gb", "1g.5gb", "1g.5gb"), SEVENTHS),
    "other slices": Form({}, ("2g.10gb", "2g.10gb", "3g.15gb"), SEVENTHS),
    "more slices": Form({}, ("1g.5gb",) * 4 + ("2g.10gb",), SEVENTHS),
}


def with_mediated_functions(root: Path) -> Path:
    """The host's files, with virtual functions that can create a mediated device each."""
    GPUS.write(root)
    for address in FUNCTIONS:
        kind = root / "sys/class/mdev_bus" / address / "mdev_supported_types/nvidia-35"
        kind.mkdir(parents=True)
        (kind / "available_instances").write_text("1\n")
    return root


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Host]:
    """The host in each form; each virtual function can create a mediated device."""
    root = with_mediated_functions(tmp_path_factory.mktemp("host"))
    return {name: form.host(root) for name, form in FORMS.items()}


def offered(tree: ProviderTree, amounts: Amounts = NONE) -> dict[tuple[str, str], int]:
    """What can still be claimed of the card."""
    free = free_in(tree, amounts)
    return {key: amount for key, amount in free.items() if "84" in key[0]}


def uses(tree: ProviderTree) -> Iterator[dict[tuple[str, str], int]]:
    """One unit in use of each record, all of it, and one of each."""
    totals = offered(tree)
    for key, total in totals.items():
        yield {key: 1}
        yield {key: total}
    yield dict.fromkeys(totals, 1)


def share_of_card(form: Form, amounts: Amounts, totals: Amounts) -> Fraction:
    """The part of the card that some amounts are."""
    whole_card = sum(totals.values())
    return sum(
        (
            amount * form.parts.get(cls, Fraction(1, whole_card))
            for (_, cls), amount in amounts.items()
        ),
        Fraction(0),
    )


@pytest.mark.parametrize("old", FORMS)
def test_a_card_is_offered_once(cards: dict[str, Host], old: str) -> None:
    """What is in use under the old form, and what is free, are never more than the card; a second
    pass changes nothing; and when all is released, the new form is as on a new host. If the use is
    unknown, everything may be in use."""
    was = first_report(cards[old])
    for new, after in cards.items():
        if new == old:
            continue
        fresh = first_report(after)
        for amounts in uses(was):
            tree = copy.deepcopy(was)
            after.report(tree, amounts)
            free = offered(tree, amounts)
            taken = share_of_card(FORMS[old], amounts, offered(was))
            left = share_of_card(FORMS[new], free, offered(fresh))
            assert taken + left <= 1, (new, amounts, free)
            assert all(
                tree.data(name).inventory[cls]["total"] >= amount
                for (name, cls), amount in amounts.items()
            )
            is_whole = offered(tree).items() >= offered(fresh).items()
            assert after.driver.notices or is_whole, new
            assert_settled(tree, after, amounts, fresh)
        tree = copy.deepcopy(was)
        for _ in range(2):
            after.report(tree, None)
            free = offered(tree, offered(was))
            assert share_of_card(FORMS[new], free, offered(fresh)) == 0, new


# --- Processors and memory ------------------------------------------------------------------------


def taken_in(tree: ProviderTree, classes: tuple[str, ...], amounts: Amounts) -> int:
    """What is in use or on offer of some classes."""
    return sum(
        max(record["total"], amounts.get((data.name, cls), 0))
        for data in map(tree.data, tree.get_provider_uuids())
        for cls, record in data.inventory.items()
        if cls in classes
    )


def uses_of(tree: ProviderTree, *classes: str) -> Iterator[dict[tuple[str, str], int]]:
    """All in use, some of all, and all of each record of some classes."""
    totals = {key: total for key, total in free_in(tree, {}).items() if key[1] in classes}
    yield totals
    yield {key: total // 4096 * 1024 if total > 4096 else 2 for key, total in totals.items()}
    yield from ({key: total} for key, total in totals.items())


def reports(
    was: ProviderTree, hosts: Mapping[str, Host], old: str, *classes: str
) -> Iterator[tuple[ProviderTree, Host, ProviderTree, Amounts]]:
    """Every other form after one, and what is in use then, unless it is refused."""
    for new, after in hosts.items():
        fresh = first_report(after)
        for amounts in uses_of(was, *classes) if new != old else ():
            tree = copy.deepcopy(was)
            try:
                in_use = after.report(tree, amounts)
            except (BadProviderTree, ReshapeFailed):
                continue
            yield fresh, after, tree, in_use


def modelled(forms: Mapping[str, Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Each form, on the root and on NUMA nodes."""
    return {
        f"{name}, {model}": {**options, "model": model}
        for name, options in forms.items()
        for model in ("flat", "numa")
    }


PROCESSORS: Final = modelled(
    {
        "shared": {},
        "dedicated": {"cpu_dedicated": "0-31"},
        "halves": {"cpu_shared": "0-15", "cpu_dedicated": "16-31"},
        "other halves": {"cpu_shared": "16-31", "cpu_dedicated": "0-15"},
        "some dedicated": {"cpu_shared": "0-11,16-27", "cpu_dedicated": "12-15,28-31"},
    }
)


@pytest.fixture(scope="module")
def processors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Host]:
    """A host of two sockets in each form."""
    root = tmp_path_factory.mktemp("processors")
    return {name: Host(TWO_SOCKETS, root, **options) for name, options in PROCESSORS.items()}


@pytest.mark.parametrize("old", PROCESSORS)
def test_a_processor_is_offered_once(processors: dict[str, Host], old: str) -> None:
    """Shared and dedicated, in use and on offer, are never more than there are; and of those that
    are all of the other kind now, none is offered while guests may run on them."""
    was = first_report(processors[old])
    for fresh, after, tree, in_use in reports(was, processors, old, "VCPU", "PCPU"):
        assert taken_in(tree, ("VCPU", "PCPU"), in_use) <= 32, in_use
        for name, cls in in_use:
            if (name, cls) not in free_in(fresh, NONE):
                other = (name, "PCPU" if cls == "VCPU" else "VCPU")
                assert free_in(tree, NONE).get(other, 0) <= free_in(was, NONE).get(other, 0)
        assert_settled(tree, after, in_use, fresh)


def pages(**by_node: dict[int, int]) -> Machine:
    """A host with 32 GiB on each node, and huge pages."""
    nodes = {
        number: replace(node, pages=by_node.get(f"node{number}", {}))
        for number, node in TWO_SOCKETS.nodes.items()
    }
    return replace(TWO_SOCKETS, nodes=nodes)


SMALL, LARGE = {2048: 4096}, {1048576: 8}
MEMORY: Final = {
    f"{name}, {how}": (machine, options)
    for name, machine in {
        "no pages": pages(),
        "small pages": pages(node0=SMALL, node1=SMALL),
        "pages of both sizes": pages(node0=SMALL, node1=LARGE),
    }.items()
    for how, options in modelled(
        {"together": {"huge_pages": "memory"}, "apart": {"huge_pages": "providers"}}
    ).items()
}


@pytest.fixture(scope="module")
def memories(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Host]:
    """Hosts of two sockets in each form."""
    root = tmp_path_factory.mktemp("memories")
    return {
        name: Host(machine, root / name.partition(",")[0], **options)
        for name, (machine, options) in MEMORY.items()
    }


@pytest.mark.parametrize("old", MEMORY)
def test_a_page_of_memory_is_offered_once(memories: dict[str, Host], old: str) -> None:
    """In use and on offer, alone and in huge pages, there is never more than the host has; and
    pages are not offered apart while what is in use may be in them."""
    was = first_report(memories[old])
    for fresh, after, tree, in_use in reports(was, memories, old, "MEMORY_MB"):
        assert taken_in(tree, ("MEMORY_MB",), in_use) <= 64 * 1024, in_use
        if not any("PAGES" in name for name, _ in free_in(was, NONE)):
            assert not any("PAGES" in name for name, _ in free_in(tree, NONE))
        assert_settled(tree, after, in_use, fresh)


# --- Other ways to the same device ----------------------------------------------------------------


def test_a_card_and_its_mediated_functions_are_not_offered_together(tmp_path: Path) -> None:
    """The rule of `pci` wins; functions that it does not select may be divided."""
    root = with_mediated_functions(tmp_path)
    mdev = mediated(35, "VGPU", *FUNCTIONS).options["mdev"]
    both = Host(GPUS, root, pci=whole("PGPU").options["pci"], mdev=mdev)
    assert offered(first_report(both)) == {("cn1_0000:84:00.0", "PGPU"): 1}
    one = [{"address": "0000:84:00.4", "resource_class": "SRIOV_NET_VF"}]
    assert sum(offered(first_report(Host(GPUS, root, pci=one, mdev=mdev))).values()) == 4


def test_a_function_that_has_gone_counts_for_its_card(tmp_path: Path) -> None:
    """Which card that was, its bus says."""
    address = next(iter(FUNCTIONS))
    root = with_mediated_functions(tmp_path / "before")
    tree = first_report(Host(GPUS, root, **mediated(35, "VGPU", address).options))
    (in_use,) = offered(tree)
    bare = replace(GPUS, pci={CARD: replace(GPUS.pci[CARD], functions={}, mdev={})})
    host = Host(bare, tmp_path / "bare", **whole("PGPU").options)
    host.report(tree, {in_use: 1})
    assert offered(tree) == {in_use: 1}
    host.report(tree, {})
    assert offered(tree) == {("cn1_0000:84:00.0", "PGPU"): 1}


def test_a_card_that_an_earlier_release_reported_whole_is_not_divided(
    cards: dict[str, Host],
) -> None:
    """It has no trait that says its form, and neither has one that was divided; that has more than
    one unit, and is one already."""
    for old, free in (("whole, renamed", 0), ("functions, renamed", 3)):
        tree = first_report(cards[old])
        for uuid in tree.get_provider_uuids("cn1"):
            tree.remove_traits(uuid, "CUSTOM_DIVIDED_INTO_VFS")
        amounts = {("cn1_0000:84:00.0", "CUSTOM_CARD"): 1}
        cards["functions, renamed"].report(tree, amounts)
        assert sum(offered(tree, amounts).values()) == free


def test_vgpus_of_the_root_are_those_of_every_gpu(cards: dict[str, Host]) -> None:
    """Whatever class the driver gives them: nova may give out each of them."""
    tree = empty_tree()
    tree.update_inventory("cn1", {"VGPU": {"total": 4}})
    cards["quarters, renamed"].report(tree, {})
    assert offered(tree) == {}
    assert "VGPU is on cn1 itself" in cards["quarters, renamed"].driver.notices[-1]
