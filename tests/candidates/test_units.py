# SPDX-License-Identifier: Apache-2.0
"""The units of an inventory: after an update, after a claim, and for several groups."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from berth.candidates import assignments
from berth.index import Index
from berth.store.engine.database import Database
from berth.store.index_feed import Portions
from tests.brute_force import answer
from tests.candidates.engine import ask, copy_of, snapshot_of
from tests.index.checking import checked
from tests.queries import parse_query
from tests.world_in_store import add_provider, build_in_store, hold, restock
from tests.worlds import Stock, World, world

#: The second one changes; the first, in the same block, stays what it is.
HOSTS = world("""
    plain   VCPU=8
    change  VCPU=8
""")


@pytest.fixture
def database(prepared: Path) -> Iterator[Database]:
    """A database with the two hosts."""
    with copy_of(prepared) as db:
        build_in_store(HOSTS, db)
        yield db


def changed(**fields: int) -> World:
    """The two hosts, with other fields in the second one's inventory."""
    plain, other = HOSTS.providers
    return World((plain, replace(other, stocks={"VCPU": Stock(8, **fields)})))


#: What the second one has, an amount, and who offers that.
UNITS = pytest.mark.parametrize(
    ("fields", "amount", "offered"),
    [
        ({"min_unit": 4}, 3, ["plain"]),
        ({"min_unit": 4}, 4, ["change", "plain"]),
        ({"step_size": 3}, 4, ["plain"]),
        ({"step_size": 3}, 3, ["change", "plain"]),
        ({"max_unit": 4}, 5, ["plain"]),
        ({"max_unit": 4}, 4, ["change", "plain"]),
    ],
)


@UNITS
def test_units_that_come_with_an_update_count_at_once(
    database: Database, fields: dict[str, int], amount: int, offered: list[str]
) -> None:
    """An update changes the units of an inventory that is already in the index."""
    index = Index(database)
    index.snapshot()
    fleet = changed(**fields)
    restock(fleet.by_name["change"], database)
    query = parse_query(f"resources=VCPU:{amount}", 33)
    candidates = ask(index.snapshot(), fleet, query, 33)
    assert candidates.candidates == [f"{name}:VCPU={amount}" for name in offered]
    assert candidates == answer(fleet, query, 33)


@UNITS
@pytest.mark.parametrize("comes_later", [False, True])
def test_units_of_a_host_count_that_stands_behind_another(
    prepared: Path, comes_later: bool, fields: dict[str, int], amount: int, offered: list[str]
) -> None:
    """The units of the second host are applied, whether it was in another part of the load or was
    added later."""
    fleet = changed(**fields)
    plain, other = fleet.providers
    with copy_of(prepared) as db:
        index = Index(db, portions=Portions(part_providers=1))
        add_provider(plain, db)
        if comes_later:
            index.snapshot()
        add_provider(other, db)
        query = parse_query(f"resources=VCPU:{amount}", 33)
        assert ask(index.snapshot(), fleet, query, 33).candidates == [
            f"{name}:VCPU={amount}" for name in offered
        ]
        assert checked(index) == []


@pytest.mark.parametrize(
    ("amount", "offered"), [(2147483647, ["host:VCPU=2147483647"]), (2147483648, [])]
)
def test_the_largest_amount_fits_and_no_larger_one(
    prepared: Path, amount: int, offered: list[str]
) -> None:
    """An inventory may have as much as 2147483647."""
    fleet = world("host  VCPU=2147483647")
    with snapshot_of(fleet, prepared) as snapshot:
        query = parse_query(f"resources=VCPU:{amount}", 33)
        assert ask(snapshot, fleet, query, 33).candidates == offered


def test_max_unit_counts_after_a_claim(database: Database) -> None:
    """A claim is applied to the index without the inventory; max_unit stays."""
    fleet = changed(max_unit=4)
    restock(fleet.by_name["change"], database)
    index = Index(database)
    index.snapshot()
    fleet = changed(max_unit=4, used=1)
    hold(fleet.by_name["change"], database)
    query = parse_query("resources=VCPU:5", 33)
    candidates = ask(index.snapshot(), fleet, query, 33)
    assert candidates.candidates == ["plain:VCPU=5"]
    assert candidates == answer(fleet, query, 33)
    assert index.counts.usages == 1


@pytest.mark.parametrize("assignments_max", [1, 64])
@pytest.mark.parametrize("hosts", [1, 3])
def test_several_groups_on_one_provider_take_its_max_unit_together(
    prepared: Path, monkeypatch: pytest.MonkeyPatch, assignments_max: int, hosts: int
) -> None:
    """Two groups of three fit separately, but not on one provider: together they exceed its
    max_unit.

    For a single host and for several searched together, in both enumerators.
    """
    monkeypatch.setattr(assignments, "ASSIGNMENTS_MAX", assignments_max)
    fleet = world(
        "\n".join(f"h{n}\n  h{n}a  VCPU=8(max:4)\n  h{n}b  VCPU=8(max:4)" for n in range(hosts))
    )
    query = parse_query("resources1=VCPU:3&resources2=VCPU:3&group_policy=none", 33)
    with snapshot_of(fleet, prepared) as snapshot:
        candidates = ask(snapshot, fleet, query, 33)
    assert set(candidates.candidates) == {f"h{n}a:VCPU=3 h{n}b:VCPU=3" for n in range(hosts)}
    assert candidates == answer(fleet, query, 33)
