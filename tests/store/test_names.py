# SPDX-License-Identifier: Apache-2.0
"""Traits, resource classes and aggregates in the database."""

from __future__ import annotations

import pytest

from berth.model.errors import (
    CannotDeleteStandardClass,
    CannotDeleteStandardTrait,
    CannotRenameStandardClass,
    ProviderGenerationConflict,
    ResourceClassExists,
    ResourceClassInUse,
    ResourceClassNotFound,
    TraitInUse,
    TraitNotFound,
    UnknownTraits,
)
from berth.model.ids import Generation
from berth.model.sentinels import UNSET
from berth.model.standard import STANDARD_CLASSES, STANDARD_TRAITS
from berth.store.aggregates import replace_aggregates
from berth.store.engine.database import Database
from berth.store.lookups import class_ids
from berth.store.resource_classes import (
    create_resource_class,
    delete_resource_class,
    ensure_resource_class,
    get_resource_class,
    list_resource_classes,
    rename_resource_class,
)
from berth.store.traits import (
    create_trait,
    delete_provider_traits,
    delete_trait,
    get_trait,
    list_traits,
    replace_provider_traits,
)
from tests.sql_reads import get_aggregates, get_provider_traits
from tests.store.fleet import add_provider, aggregate, generation, provider, restock

P1 = provider(1)


def test_a_trait_is_made_once(db: Database) -> None:
    """Creating it again reports that it exists."""
    made, first = create_trait(db, "CUSTOM_A")
    again, second = create_trait(db, "CUSTOM_A")
    assert (first, second) == (True, False)
    assert made == again == get_trait(db, "CUSTOM_A")


def test_lists_of_traits(db: Database) -> None:
    """By name, by literal prefix, by whether a provider has them."""
    create_trait(db, "CUSTOM_A_B")
    create_trait(db, "CUSTOM_AXB")
    add_provider(db, 1)
    replace_provider_traits(db, P1, ["CUSTOM_A_B"], Generation(0))
    everything = list_traits(db, names=None, prefix=None, associated=None)
    assert set(everything.names) == {*STANDARD_TRAITS, "CUSTOM_A_B", "CUSTOM_AXB"}

    def listed(
        names: list[str] | None = None, prefix: str | None = None, associated: bool | None = None
    ) -> list[str]:
        return list_traits(db, names=names, prefix=prefix, associated=associated).names

    assert listed(names=["CUSTOM_AXB", "NOPE", "custom_a_b"]) == ["CUSTOM_AXB"]
    assert listed(names=[]) == []
    assert listed(prefix="CUSTOM_A_") == ["CUSTOM_A_B"]
    assert listed(prefix="custom_") == []
    assert listed(prefix="") == everything.names
    assert listed(associated=True) == ["CUSTOM_A_B"]
    assert listed(prefix="CUSTOM", associated=False) == ["CUSTOM_AXB"]
    assert list_traits(db, names=[], prefix=None, associated=None).last_modified is None


def test_the_same_traits_again_are_no_change(db: Database) -> None:
    """The generation changes only if the set does."""
    create_trait(db, "CUSTOM_A")
    add_provider(db, 1)
    first = replace_provider_traits(db, P1, ["CUSTOM_A", "CUSTOM_A"], Generation(0))
    assert (first.generation, first.names) == (1, ["CUSTOM_A"])
    assert replace_provider_traits(db, P1, ["CUSTOM_A"], Generation(1)) == first
    with pytest.raises(ProviderGenerationConflict):
        replace_provider_traits(db, P1, ["CUSTOM_X"], Generation(0))
    with pytest.raises(UnknownTraits) as refusal:
        replace_provider_traits(db, P1, ["CUSTOM_Y", "CUSTOM_A", "CUSTOM_X"], Generation(1))
    assert refusal.value.traits == ("CUSTOM_Y", "CUSTOM_X")
    delete_provider_traits(db, P1)
    delete_provider_traits(db, P1)
    gone = get_provider_traits(db, P1)
    assert (gone.generation, gone.names, gone.last_modified) == (2, [], None)


def test_which_traits_can_be_deleted(db: Database) -> None:
    """Custom ones that no provider has."""
    create_trait(db, "CUSTOM_A")
    add_provider(db, 1)
    replace_provider_traits(db, P1, ["CUSTOM_A"], Generation(0))
    with pytest.raises(TraitInUse):
        delete_trait(db, "CUSTOM_A")
    with pytest.raises(CannotDeleteStandardTrait):
        delete_trait(db, STANDARD_TRAITS[0])
    delete_provider_traits(db, P1)
    delete_trait(db, "CUSTOM_A")
    with pytest.raises(TraitNotFound):
        delete_trait(db, "CUSTOM_A")
    with pytest.raises(TraitNotFound):
        get_trait(db, "CUSTOM_A")


def test_custom_classes_have_ids_from_10000_on(db: Database) -> None:
    """Above the standard ones, in the order of their creation."""
    create_resource_class(db, "CUSTOM_B")
    assert ensure_resource_class(db, "CUSTOM_A") is True
    assert ensure_resource_class(db, "CUSTOM_A") is False
    with pytest.raises(ResourceClassExists):
        create_resource_class(db, "CUSTOM_A")
    assert list_resource_classes(db).names == [*STANDARD_CLASSES, "CUSTOM_B", "CUSTOM_A"]
    with db.read() as tx:
        assert class_ids(tx, ["CUSTOM_A", "CUSTOM_B", "CUSTOM_C", "DISK_GB"]) == {
            "CUSTOM_A": 10001,
            "CUSTOM_B": 10000,
            "DISK_GB": 2,
        }


def test_renaming_a_class(db: Database) -> None:
    """Inventories of the class have the new name."""
    ensure_resource_class(db, "CUSTOM_A")
    ensure_resource_class(db, "CUSTOM_B")
    add_provider(db, 1, CUSTOM_A=3)
    rename_resource_class(db, "CUSTOM_A", "CUSTOM_C")
    rename_resource_class(db, "CUSTOM_C", "CUSTOM_C")
    assert get_resource_class(db, "CUSTOM_C").last_modified is not None
    with pytest.raises(ResourceClassExists):
        rename_resource_class(db, "CUSTOM_C", "CUSTOM_B")
    with pytest.raises(ResourceClassNotFound):
        rename_resource_class(db, "CUSTOM_A", "CUSTOM_D")
    with pytest.raises(CannotRenameStandardClass):
        rename_resource_class(db, "VCPU", "CUSTOM_D")
    with pytest.raises(ResourceClassInUse):
        delete_resource_class(db, "CUSTOM_C")


def test_which_classes_can_be_deleted(db: Database) -> None:
    """Custom ones without inventory."""
    ensure_resource_class(db, "CUSTOM_A")
    add_provider(db, 1, CUSTOM_A=3)
    with pytest.raises(ResourceClassInUse):
        delete_resource_class(db, "CUSTOM_A")
    restock(db, 1, VCPU=1)
    delete_resource_class(db, "CUSTOM_A")
    for name, refusal in (
        ("CUSTOM_A", ResourceClassNotFound),
        ("VCPU", CannotDeleteStandardClass),
    ):
        with pytest.raises(refusal):
            delete_resource_class(db, name)
    with pytest.raises(ResourceClassNotFound):
        get_resource_class(db, "CUSTOM_A")


def test_aggregates_are_replaced_as_a_set(db: Database) -> None:
    """From 1.19 on, a replacement always increments the generation; before, it never does."""
    add_provider(db, 1)
    one, two = aggregate(1), aggregate(2)
    assert replace_aggregates(db, P1, [one, two], Generation(0)) == 1
    assert replace_aggregates(db, P1, [two, one], Generation(1)) == 2
    with pytest.raises(ProviderGenerationConflict):
        replace_aggregates(db, P1, [], Generation(1))
    assert replace_aggregates(db, P1, [two], UNSET) == 2
    assert get_aggregates(db, P1).spellings == [two]
    assert replace_aggregates(db, P1, [], Generation(2)) == generation(db, 1) == 3
    assert get_aggregates(db, P1).spellings == []
