# SPDX-License-Identifier: Apache-2.0
"""The messages of errors: the sentence that clients match, and berth's own hint after it."""

from __future__ import annotations

import pytest

from berth.model import errors
from berth.model.ids import ConsumerUUID, Generation, ProviderUUID

P = ProviderUUID("p-uuid")
C = ConsumerUUID("c-uuid")


@pytest.mark.parametrize(
    ("error", "fragments"),
    [
        (errors.ProviderNotFound(P), ["No resource provider with uuid p-uuid found"]),
        (errors.ProviderNotFound(P, to_delete=True), ["found for delete"]),
        (errors.InventoryNotFound(P, "VCPU"), ["No inventory of class VCPU for p-uuid"]),
        (
            errors.InventoryNotFound(P, "VCPU", to_delete=True),
            ["No inventory of class", "found for delete"],
        ),
        (errors.AllocationsNotFound("c"), ["No allocations for consumer 'c'"]),
        (errors.UnknownTraits(["A", "B"]), ["No such trait(s): A."]),
        (errors.UnknownClassInInventory(P, "X"), ["Unknown resource class in inventory"]),
        (
            errors.UnknownClassInAllocation(C, "X"),
            ["Unable to allocate inventory for consumer", "No such resource class X"],
        ),
        (
            errors.ParentNotFound(P, P, new_name="n"),
            ['Unable to create resource provider "n", p-uuid:', "UUID does not exist"],
        ),
        (errors.TreeLoop(P, P), ["creating loop in the provider tree is not allowed."]),
        (errors.DuplicateProviderName("n"), ["Conflicting resource provider name:"]),
        (errors.DuplicateProviderUUID(P), ["Conflicting resource provider uuid: p-uuid"]),
        (
            errors.ProviderGenerationConflict(P, seen=3, actual=Generation(4)),
            ["resource provider generation conflict"],
        ),
        (
            errors.ConsumerGenerationConflict(C, seen=3, actual=None),
            ["consumer generation conflict - expected null but got 3"],
        ),
        (
            errors.ConsumerGenerationConflict(C, seen=None, actual=Generation(2)),
            ["consumer generation conflict - expected 2 but got None"],
        ),
        (
            errors.InventoryInUse(P, ["VCPU"]),
            ["Inventory for 'VCPU' on resource provider 'p-uuid' in use."],
        ),
        (
            errors.CapacityExceeded(P, "VCPU", asked=3, free=1),
            [
                "Unable to allocate inventory: Unable to create allocation for 'VCPU' on",
                "The requested amount would exceed the capacity.",
            ],
        ),
        (errors.TraitInUse("X"), ["The trait X is in use by a resource provider."]),
    ],
)
def test_the_fragments_that_clients_match(error: errors.BerthError, fragments: list[str]) -> None:
    """Each occurs in the message, letter for letter."""
    for fragment in fragments:
        assert fragment in str(error)


def test_what_berth_adds_stands_in_the_hint() -> None:
    """Amounts, generations and next steps, which no client matches."""
    exceeded = errors.CapacityExceeded(P, "VCPU", asked=3, free=1)
    assert exceeded.hint == "3 asked, 1 free."
    stale = errors.ProviderGenerationConflict(P, seen=3, actual=Generation(4))
    assert "p-uuid is at generation 4, not 3" in stale.hint
    assert errors.ProviderNotFound(P).hint == ""


def test_phrases_that_must_not_appear() -> None:
    """Clients distinguish a taken uuid from a taken name, and a lost race from a wrong
    generation."""
    assert "provider name" not in str(errors.DuplicateProviderUUID(P))
    for error in (errors.LostRace("resource provider p"), errors.ConsumerRace([C])):
        assert "consumer generation conflict" not in str(error)
