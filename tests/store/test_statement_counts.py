# SPDX-License-Identifier: Apache-2.0
"""No operation sends more statements on a large fleet than on a small one; a claim sends few."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from berth.model.inventory import Inventory
from berth.store.aggregates import replace_aggregates
from berth.store.allocations import (
    consumer_allocations,
    delete_allocations,
    provider_allocations,
)
from berth.store.engine.database import Database
from berth.store.engine.opening import DatabaseOptions, open_database
from berth.store.inventories import delete_inventories
from berth.store.providers import delete_provider, get_provider, update_provider
from berth.store.reshape import ReshapedInventories, reshape
from berth.store.traits import list_traits, replace_provider_traits
from berth.store.usages import project_usages, project_usages_by_type
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    consumer,
    generation,
    holding,
    provider,
    restock,
)
from tests.store.statements import counted_statements

P1 = provider(1)
CALLS: dict[str, Callable[[Database], object]] = {
    "get": lambda db: get_provider(db, P1),
    "create": lambda db: add_provider(db, 5000, parent=1),
    "move": lambda db: update_provider(
        db, P1, name="moved", parent_uuid=provider(3), may_reparent=True
    ),
    "restock": lambda db: restock(db, 1, VCPU=100, DISK_GB=5),
    "replace traits": lambda db: replace_provider_traits(db, P1, [], generation(db, 1)),
    "all traits": lambda db: list_traits(db, names=None, prefix=None, associated=True),
    "replace aggregates": lambda db: replace_aggregates(db, P1, [], generation(db, 1)),
    "provider allocations": lambda db: provider_allocations(db, P1),
    "consumer allocations": lambda db: consumer_allocations(db, consumer(2)),
    "project usages": lambda db: project_usages(db, "project", "user"),
    "usages by type": lambda db: project_usages_by_type(db, "project", None, None),
    "claim": lambda db: claim(db, holding(9999, {1: {"VCPU": 1}, 2: {"VCPU": 1}})),
    "replace claim": lambda db: claim(db, holding(2, {2: {"VCPU": 1}}, seen=1)),
    "release": lambda db: delete_allocations(db, consumer(2)),
    "reshape": lambda db: reshape(
        db,
        [ReshapedInventories(P1, generation(db, 1), {"DISK_GB": Inventory(5)})],
        [holding(number, {2: {"VCPU": 1}}) for number in range(2)],
    ),
    "empty": lambda db: delete_inventories(db, provider(4)),
    "delete": lambda db: delete_provider(db, provider(4)),
}


def populate(db: Database, size: int) -> None:
    """Create a tree of `size` providers below p1, p2 and p3 beside it, two consumers on p1, more on
    p2."""
    add_provider(db, 1, VCPU=100)
    for number in (2, 3, 4):
        add_provider(db, number, VCPU=10_000)
    for number in range(10, 10 + size):
        add_provider(db, number, parent=1, VCPU=1)
    replace_provider_traits(db, P1, ["HW_CPU_X86_VMX"], generation(db, 1))
    replace_aggregates(db, P1, [aggregate(1)], generation(db, 1))
    claim(db, *(holding(number, {1: {"VCPU": 1}}) for number in range(2)))
    claim(db, *(holding(number, {2: {"VCPU": 1}}) for number in range(2, 2 + size)))


@pytest.fixture(scope="module")
def fleets(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Files with a small and a larger fleet, to be copied."""

    def built(size: int) -> Path:
        path = tmp_path_factory.mktemp("fleet") / "berth.db"
        db = opened(Path(shutil.copy(prepared, path)))
        populate(db, size)
        db.dispose()
        return path

    return built(3), built(60)


def opened(path: Path) -> Database:
    """A database that only this test has open."""
    return open_database(f"sqlite:///{path}", options=DatabaseOptions(synchronous=False))


@pytest.mark.parametrize("name", CALLS)
def test_the_number_of_statements_does_not_grow_with_the_fleet(
    name: str, fleets: tuple[Path, Path], tmp_path: Path
) -> None:
    """Neither with the number of providers nor with that of consumers."""
    counts = []
    for fleet in fleets:
        db = opened(Path(shutil.copy(fleet, tmp_path / fleet.parent.name)))
        with counted_statements(db) as sent:
            CALLS[name](db)
        counts.append(len(sent))
        db.dispose()
    assert counts[0] == counts[1]


def test_what_a_claim_costs(db: Database) -> None:
    """The claim of a new consumer whose project and user exist: the reason for each statement."""
    add_provider(db, 1, VCPU=100)
    claim(db, holding(1, {1: {"VCPU": 1}}, consumer_type="INSTANCE"))
    with counted_statements(db) as sent:
        claim(db, holding(2, {1: {"VCPU": 1}}, consumer_type="INSTANCE"))
    shapes = [
        " ".join(re.findall(r"^\w+|(?<=FROM )\w+|(?<=INTO )\w+|(?<=UPDATE )\w+", future)[:2])
        for future in sent[1:]  # after that which begins, which each engine says in its own way
    ]
    assert shapes == [
        "SELECT berth_consumer_names",  # and all else that it is decided on
        "UPDATE resource_providers",
        "UPDATE berth_usages",
        "INSERT allocations",
        "INSERT consumers",
        "UPDATE berth_writer",
        "INSERT berth_journal",
        "UPDATE berth_project_usages",
    ]
