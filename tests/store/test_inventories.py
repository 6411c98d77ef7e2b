# SPDX-License-Identifier: Apache-2.0
"""Inventories in the database: generations, replacement, inventories in use."""

from __future__ import annotations

import pytest

from berth.model.errors import (
    InventoryExists,
    InventoryInUse,
    InventoryInUseOnDelete,
    InventoryNotFound,
    InventoryNotOnProvider,
    ProviderGenerationConflict,
    ProviderNotFound,
    ResourceClassNotFound,
    UnknownClassInInventory,
)
from berth.model.ids import Generation
from berth.model.inventory import Inventory
from berth.store.engine.database import Database
from berth.store.inventories import (
    create_inventory,
    delete_inventories,
    delete_inventory,
    replace_inventories,
    update_inventory,
)
from berth.store.resource_classes import ensure_resource_class
from berth.upkeep import schema
from tests.sql_reads import get_inventory, list_inventories, provider_usages
from tests.store.fleet import add_provider, claim, generation, holding, provider

P1 = provider(1)
ODD = Inventory(10, reserved=1, min_unit=2, max_unit=8, step_size=2, allocation_ratio=1.5)


def test_every_write_moves_the_generation_by_one(db: Database) -> None:
    """Even one that changes nothing."""
    add_provider(db, 1)
    assert create_inventory(db, P1, "VCPU", ODD) == 1
    assert replace_inventories(db, P1, Generation(1), {"VCPU": ODD}) == 2
    assert update_inventory(db, P1, "VCPU", Generation(2), ODD) == 3
    delete_inventory(db, P1, "VCPU")
    delete_inventories(db, P1)
    assert generation(db, 1) == 5


def test_what_was_written_is_read_back(db: Database) -> None:
    """All six fields, and the newest time of modification."""
    add_provider(db, 1)
    assert list_inventories(db, P1).last_modified is None
    create_inventory(db, P1, "VCPU", ODD)
    create_inventory(db, P1, "DISK_GB", Inventory(5))
    listed = list_inventories(db, P1)
    assert listed.generation == 2
    assert listed.inventories == {"VCPU": ODD, "DISK_GB": Inventory(5)}
    disk = get_inventory(db, P1, "DISK_GB")
    assert (disk.inventory, disk.generation) == (Inventory(5), 2)
    assert listed.last_modified == disk.last_modified


def test_a_replacement_is_of_the_whole_set(db: Database) -> None:
    """Inventories that are not in the new set are removed, and usage rows follow."""
    add_provider(db, 1, VCPU=1, DISK_GB=1)
    replace_inventories(db, P1, Generation(1), {"VCPU": Inventory(2), "MEMORY_MB": Inventory(3)})
    assert list_inventories(db, P1).inventories == {
        "VCPU": Inventory(2),
        "MEMORY_MB": Inventory(3),
    }
    assert provider_usages(db, P1).usages == {"VCPU": 0, "MEMORY_MB": 0}
    assert schema.check(db) == []


def test_an_inventory_in_use_stays(db: Database) -> None:
    """It can shrink but not be removed, and a refusal changes nothing."""
    ensure_resource_class(db, "CUSTOM_GPU")
    add_provider(db, 1, VCPU=4, CUSTOM_GPU=1, DISK_GB=1)
    claim(db, holding(1, {1: {"VCPU": 4, "CUSTOM_GPU": 1}}))
    before = list_inventories(db, P1)
    with pytest.raises(InventoryInUse) as refusal:
        replace_inventories(db, P1, before.generation, {"DISK_GB": Inventory(9)})
    assert "'VCPU, CUSTOM_GPU' on resource provider" in str(refusal.value)
    with pytest.raises(InventoryInUse):
        delete_inventories(db, P1)
    with pytest.raises(InventoryInUseOnDelete, match=r"Inventory for 'VCPU' on .* in use\."):
        delete_inventory(db, P1, "VCPU")
    assert list_inventories(db, P1) == before
    delete_inventory(db, P1, "DISK_GB")
    update_inventory(db, P1, "VCPU", Generation(before.generation + 1), Inventory(1))
    assert get_inventory(db, P1, "VCPU").inventory.total == 1


def test_which_fault_wins(db: Database) -> None:
    """Provider, then generation, then class, then inventory."""
    with pytest.raises(ProviderNotFound):
        replace_inventories(db, P1, Generation(7), {"CUSTOM_X": ODD})
    add_provider(db, 1, VCPU=1)
    with pytest.raises(ProviderGenerationConflict, match="resource provider generation conflict"):
        replace_inventories(db, P1, Generation(7), {"CUSTOM_X": ODD})
    with pytest.raises(UnknownClassInInventory):
        replace_inventories(db, P1, Generation(1), {"CUSTOM_X": ODD})
    with pytest.raises(ProviderGenerationConflict):
        update_inventory(db, P1, "CUSTOM_X", Generation(2**70), ODD)
    with pytest.raises(ResourceClassNotFound):
        update_inventory(db, P1, "CUSTOM_X", Generation(1), ODD)
    with pytest.raises(InventoryNotOnProvider):
        update_inventory(db, P1, "DISK_GB", Generation(1), ODD)
    with pytest.raises(UnknownClassInInventory):
        create_inventory(db, P1, "CUSTOM_X", ODD)
    with pytest.raises(InventoryExists):
        create_inventory(db, P1, "VCPU", ODD)
    for class_name in ("DISK_GB", "CUSTOM_X"):
        with pytest.raises(InventoryNotFound):
            get_inventory(db, P1, class_name)
        with pytest.raises(InventoryNotFound, match="found for delete"):
            delete_inventory(db, P1, class_name)
    assert generation(db, 1) == 1
