# SPDX-License-Identifier: Apache-2.0
"""From the body of `PUT /berth/v1/trees/{reference}` to a wanted tree.

Source: spec/beyond.md 6.3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from berth.api.berth_v1 import body
from berth.api.berth_v1.pointed import PointedSchema, pointer_of, refused
from berth.api.berth_v1.refusals import unknown_reference
from berth.api.inventories import decode
from berth.api.operations.berth_v1.trees import PUT
from berth.api.request import Request
from berth.candidates.references import References, UnknownReference
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateUUID, ProviderUUID, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.model.provider_trees import WantedProvider, WantedTree
from berth.model.sentinels import UNSET

_PUT: Final = PointedSchema(PUT)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A wanted tree, with the body that it was read from."""

    tree: WantedTree
    sent: Sequence[Mapping[str, Any]]

    @property
    def uuids(self) -> frozenset[ProviderUUID]:
        """The uuids in the body."""
        return frozenset(each.uuid for each in self.tree.providers if each.uuid is not None)

    def pointer_to_first(
        self, part: Literal["inventories", "traits"], names: Mapping[str, object]
    ) -> tuple[str, str]:
        """The first of some names in the body, and the pointer to it."""
        for place, provider in enumerate(self.sent):
            for number, name in enumerate(provider.get(part, ())):
                if name in names:
                    last = number if part == "traits" else name
                    return name, pointer_of(("providers", place, part, last))
        return next(iter(names)), "/providers"


def read_tree(request: Request, reference: str, snapshot: Snapshot) -> Wanted:
    """The tree that a body wants.

    Raises:
        Refused: 400.
    """
    sent = body.read(request, _PUT)
    references = References(snapshot)
    spellings: dict[AggregateUUID, str] = {}
    providers = [
        _provider(each, place, references, spellings)
        for place, each in enumerate(sent["providers"])
    ]
    tree = WantedTree(
        reference,
        providers,
        remove_missing=sent.get("remove_missing", False),
        create_names=sent.get("create_names", False),
        spellings=spellings,
    )
    return Wanted(tree, sent["providers"])


def _provider(
    sent: Mapping[str, Any],
    place: int,
    references: References,
    spellings: dict[AggregateUUID, str],
) -> WantedProvider:
    at = ("providers", place)
    if "uuid" not in sent and "name" not in sent:
        raise refused(pointer_of(at), "lacks a uuid or a name")
    aggregates = None
    if "aggregates" in sent:
        aggregates = frozenset(
            _aggregate(each, pointer_of((*at, "aggregates", number)), references, spellings)
            for number, each in enumerate(sent["aggregates"])
        )
    return WantedProvider(
        ProviderUUID(parse_uuid_lax(sent["uuid"]) or "") if "uuid" in sent else None,
        sent.get("name"),
        sent.get("parent", UNSET),
        _inventories(sent["inventories"], at) if "inventories" in sent else None,
        frozenset(sent["traits"]) if "traits" in sent else None,
        aggregates,
    )


def _inventories(
    sent: Mapping[str, Mapping[str, Any]], at: tuple[str | int, ...]
) -> dict[str, Inventory]:
    inventories = {}
    for name, record in sent.items():
        inventory = inventories[name] = decode(record)
        if inventory.capacity < 0:
            pointer = pointer_of((*at, "inventories", name))
            raise refused(pointer, "has a reserved amount that is greater than the total")
    return inventories


def _aggregate(
    reference: str, at: str, references: References, spellings: dict[AggregateUUID, str]
) -> AggregateUUID:
    """The aggregate that a reference stands for; a uuid may be that of a new one.

    Raises:
        Refused: 400 for a label that no aggregate has, or that several have.
    """
    uuid = parse_uuid_lax(reference)
    if uuid is None:
        labelled = references.aggregates(reference)
        if not labelled:
            raise unknown_reference(UnknownReference(at, "aggregate", reference), references)
        if len(labelled) > 1:
            raise refused(at, f"is a label of {len(labelled)} aggregates: {reference}")
        (uuid,) = labelled
    spellings.setdefault(AggregateUUID(uuid), reference if parse_uuid_lax(reference) else uuid)
    return AggregateUUID(uuid)
