# SPDX-License-Identifier: Apache-2.0
"""Providers in the database: filters, names, trees."""

from __future__ import annotations

import pytest

from berth.model.errors import (
    DuplicateProviderName,
    DuplicateProviderUUID,
    InvalidInput,
    ParentIsSelf,
    ParentNotFound,
    ProviderHasChildren,
    ProviderInUse,
    ProviderNotFound,
    ReparentNotAllowed,
    TreeLoop,
    UnknownResourceClass,
    UnknownTraits,
    UnparentNotAllowed,
)
from berth.model.filters import ProviderFilters
from berth.model.inventory import Inventory
from berth.model.sentinels import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.engine.database import Database
from berth.store.providers import create_provider, delete_provider, get_provider, update_provider
from berth.store.traits import create_trait, replace_provider_traits
from berth.upkeep import schema
from tests.servers.statements import run
from tests.store.fleet import (
    add_provider,
    aggregate,
    claim,
    generation,
    holding,
    provider,
)
from tests.store.listing import list_providers


def names(db: Database, filters: ProviderFilters) -> list[str]:
    """The names of the listed providers."""
    return [provider.name for provider in list_providers(db, filters)]


def tree(db: Database) -> dict[str, tuple[str | None, str]]:
    """Parent and root of every provider, by name."""
    everyone = list_providers(db, ProviderFilters())
    name = {row.uuid: row.name for row in everyone}
    return {
        row.name: (name[row.parent_uuid] if row.parent_uuid else None, name[row.root_uuid])
        for row in everyone
    }


def move(db: Database, number: int, parent: int | None, *, may_reparent: bool = True) -> None:
    """Give a provider another parent."""
    update_provider(
        db,
        provider(number),
        name=f"p{number}",
        parent_uuid=None if parent is None else provider(parent),
        may_reparent=may_reparent,
    )


def test_a_new_provider_is_its_own_root_at_generation_0(db: Database) -> None:
    """A child has the root of its parent."""
    for number, parent in ((1, None), (2, 1), (3, 2)):
        add_provider(db, number, parent=parent)
    created = get_provider(db, provider(1))
    assert (created.generation, created.parent_uuid, created.root_uuid) == (0, None, provider(1))
    assert created.created_at and created.last_modified
    assert created.last_modified >= created.created_at
    assert tree(db) == {"p1": (None, "p1"), "p2": ("p1", "p1"), "p3": ("p2", "p1")}


def test_what_is_returned_is_what_is_stored(db: Database) -> None:
    """After creating and after updating."""
    created = create_provider(db, uuid=provider(1), name="n", parent_uuid=None)
    assert created == get_provider(db, provider(1))
    updated = update_provider(db, provider(1), name="", parent_uuid=UNSET, may_reparent=False)
    assert updated == get_provider(db, provider(1))
    assert updated.name == "" and updated.updated_at is not None and updated.generation == 0


def test_who_cannot_be_created(db: Database) -> None:
    """A taken uuid is reported before a taken name, an invalid parent before both."""
    add_provider(db, 1)
    with pytest.raises(DuplicateProviderUUID):
        create_provider(db, uuid=provider(1), name="p1", parent_uuid=None)
    with pytest.raises(DuplicateProviderName):
        create_provider(db, uuid=provider(2), name="p1", parent_uuid=None)
    with pytest.raises(ParentIsSelf):
        create_provider(db, uuid=provider(2), name="p1", parent_uuid=provider(2))
    with pytest.raises(ParentNotFound):
        create_provider(db, uuid=provider(2), name="p1", parent_uuid=provider(9))
    assert names(db, ProviderFilters()) == ["p1"]


def test_a_rename_keeps_the_parent_and_cannot_take_a_name(db: Database) -> None:
    """The new name may be the provider's own."""
    for number, parent in ((1, None), (2, 1)):
        add_provider(db, number, parent=parent)
    update_provider(db, provider(2), name="p2", parent_uuid=UNSET, may_reparent=False)
    with pytest.raises(DuplicateProviderName):
        update_provider(db, provider(2), name="p1", parent_uuid=UNSET, may_reparent=False)
    with pytest.raises(ProviderNotFound):
        update_provider(db, provider(3), name="p3", parent_uuid=UNSET, may_reparent=False)
    assert tree(db)["p2"] == ("p1", "p1")


def test_a_subtree_moves_with_its_top(db: Database) -> None:
    """All descendants get the new root."""
    for number, parent in ((1, None), (2, 1), (3, 2), (4, None)):
        add_provider(db, number, parent=parent)
    move(db, 2, 4)
    assert tree(db)["p3"] == ("p2", "p4")
    move(db, 2, None)
    assert tree(db) == {
        "p1": (None, "p1"),
        "p2": (None, "p2"),
        "p3": ("p2", "p2"),
        "p4": (None, "p4"),
    }
    assert schema.check(db) == []


def test_where_a_provider_cannot_move(db: Database) -> None:
    """Not below itself; below 1.37 not away from a parent; not below a provider that does not
    exist."""
    for number, parent in ((1, None), (2, 1), (3, 2), (4, None)):
        add_provider(db, number, parent=parent)
    for number, parent, may_reparent, refusal in (
        (1, 1, True, TreeLoop),
        (1, 3, True, TreeLoop),
        (1, 3, False, TreeLoop),
        (2, 3, True, TreeLoop),
        (2, 9, True, ParentNotFound),
        (2, 4, False, ReparentNotAllowed),
        (2, None, False, UnparentNotAllowed),
    ):
        with pytest.raises(refusal):
            move(db, number, parent, may_reparent=may_reparent)
    move(db, 2, 1, may_reparent=False)
    move(db, 1, 4, may_reparent=False)
    assert tree(db)["p3"] == ("p2", "p4")


def test_a_provider_goes_with_all_that_is_its_own(db: Database) -> None:
    """Children are reported before allocations."""
    add_provider(db, 1, VCPU=4)
    add_provider(db, 2, parent=1)
    create_trait(db, "CUSTOM_T")
    replace_provider_traits(db, provider(1), ["CUSTOM_T"], generation(db, 1))
    replace_aggregates(db, provider(1), [aggregate(1)], generation(db, 1))
    claim(db, holding(1, {1: {"VCPU": 1}}))
    with pytest.raises(ProviderHasChildren):
        delete_provider(db, provider(1))
    delete_provider(db, provider(2))
    with pytest.raises(ProviderInUse):
        delete_provider(db, provider(1))
    claim(db, holding(1, {}))
    delete_provider(db, provider(1))
    with pytest.raises(ProviderNotFound, match="found for delete"):
        delete_provider(db, provider(1))
    assert schema.check(db) == []


def test_filters_by_identity_and_tree(db: Database) -> None:
    """`in_tree` may name any provider of the tree; an unknown one matches nothing."""
    for number, parent in ((1, None), (2, 1), (3, None)):
        add_provider(db, number, parent=parent)
    assert names(db, ProviderFilters(name="p2")) == ["p2"]
    assert names(db, ProviderFilters(uuid=provider(3))) == ["p3"]
    assert names(db, ProviderFilters(in_tree=provider(2))) == ["p1", "p2"]
    assert names(db, ProviderFilters(in_tree=provider(9))) == []
    assert names(db, ProviderFilters(in_tree=provider(2), name="p3")) == []


@pytest.mark.engines("mariadb")
def test_a_name_is_exact_in_an_adopted_database(db: Database, fresh_url: str) -> None:
    """Its collation may treat names as equal that differ in letter case."""
    run(
        fresh_url,
        "ALTER TABLE resource_providers CONVERT TO CHARACTER SET utf8mb4"
        " COLLATE utf8mb4_general_ci",
    )
    add_provider(db, 1)
    assert names(db, ProviderFilters(name="P1")) == []
    assert names(db, ProviderFilters(name="p1")) == ["p1"]


def test_filters_by_aggregate(db: Database) -> None:
    """Each set means any of its aggregates, and all sets must match; forbidding an unknown
    aggregate excludes no provider."""
    for number, memberships in ((1, [1]), (2, [1, 2]), (3, [])):
        add_provider(db, number)
        replace_aggregates(
            db, provider(number), [aggregate(membership) for membership in memberships], UNSET
        )
    one, two, nobodys = (frozenset({aggregate(number)}) for number in (1, 2, 9))
    assert names(db, ProviderFilters(member_of=(one,))) == ["p1", "p2"]
    assert names(db, ProviderFilters(member_of=(one, two))) == ["p2"]
    assert names(db, ProviderFilters(member_of=(two | nobodys,))) == ["p2"]
    assert names(db, ProviderFilters(member_of=(nobodys,))) == []
    assert names(db, ProviderFilters(not_member_of=two)) == ["p1", "p3"]
    assert names(db, ProviderFilters(not_member_of=nobodys)) == ["p1", "p2", "p3"]
    assert names(db, ProviderFilters(member_of=(two,), not_member_of=two)) == []


def test_filters_by_trait(db: Database) -> None:
    """Every trait must exist, also the forbidden ones."""
    for number, traits in ((1, ["CUSTOM_A"]), (2, ["CUSTOM_A", "CUSTOM_B"]), (3, [])):
        add_provider(db, number)
        for name in traits:
            create_trait(db, name)
        replace_provider_traits(db, provider(number), traits, generation(db, number))
    a, b = frozenset({"CUSTOM_A"}), frozenset({"CUSTOM_B"})
    assert names(db, ProviderFilters(required=(a,))) == ["p1", "p2"]
    assert names(db, ProviderFilters(required=(a, b))) == ["p2"]
    assert names(db, ProviderFilters(required=(a | b,), forbidden=b)) == ["p1"]
    assert names(db, ProviderFilters(required=(a,), forbidden=a)) == []
    with pytest.raises(UnknownTraits) as refusal:
        names(db, ProviderFilters(required=(a | {"CUSTOM_Y"},), forbidden=frozenset({"CUSTOM_X"})))
    assert refusal.value.traits == ("CUSTOM_X", "CUSTOM_Y")


def test_filters_by_free_resources(db: Database) -> None:
    """Only the provider's own free capacity counts, in units that it allows."""
    add_provider(db, 1, VCPU=Inventory(4, allocation_ratio=2.0))
    add_provider(db, 2, VCPU=Inventory(8, min_unit=2, step_size=2, max_unit=6), DISK_GB=10)
    claim(db, holding(1, {1: {"VCPU": 3}}))
    for amount, expected in ((1, ["p1"]), (4, ["p1", "p2"]), (6, ["p2"]), (8, []), (2**70, [])):
        assert names(db, ProviderFilters(resources={"VCPU": amount})) == expected
    assert names(db, ProviderFilters(resources={"VCPU": 2, "DISK_GB": 10})) == ["p2"]
    with pytest.raises(UnknownResourceClass, match="No such resource class CUSTOM_X"):
        names(db, ProviderFilters(resources={"VCPU": 2**70, "CUSTOM_X": 1}))


def test_absurdly_many_filters_are_refused(db: Database) -> None:
    """One large set is accepted, but not more sets than a statement can have."""
    many = [aggregate(number) for number in range(1200)]
    add_provider(db, 1)
    replace_aggregates(db, provider(1), many, UNSET)
    assert names(db, ProviderFilters(member_of=(frozenset(many),))) == ["p1"]
    with pytest.raises(InvalidInput, match="1200 different conditions"):
        names(db, ProviderFilters(member_of=tuple(frozenset({one}) for one in many)))
