# SPDX-License-Identifier: Apache-2.0
"""The body of `PUT /berth/v1/trees`, and the tree that it wants. Source: spec/beyond.md 6.3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Struct

from berth.api import examples
from berth.api.berth_v1.grammar import Names, counted
from berth.api.berth_v1.inputs import BodySchema
from berth.api.berth_v1.questions import JSONObject
from berth.api.berth_v1.refusals import pointer_of, refused, unknown_reference
from berth.api.paths import provider_uuid
from berth.api.placement.inventories import decode
from berth.api.request import Call
from berth.api.schema import JSONSchema
from berth.api.shapes import (
    CLASS_NAME,
    CLASS_NAME_PATTERN,
    INVENTORY,
    UUID,
    closed_object,
    list_of,
    object_by,
)
from berth.api.struct_schema import Input
from berth.candidates.references import References, UnknownReference
from berth.index.snapshot import Snapshot
from berth.model.ids import AggregateUUID, ProviderUUID, parse_uuid_lax
from berth.model.inventory import Inventory
from berth.model.names import NAME_LENGTH_MAX, PROVIDER_NAME_LENGTH_MAX
from berth.model.provider_trees import WantedProvider, WantedTree
from berth.model.shown import UNSET, Sometimes

_IGNORED: JSONSchema = {"description": "Ignored, so that what `GET` shows can be sent back."}
_Ignored = Annotated[Any, _IGNORED]


class ProviderInput(Input):
    """A provider of the tree that is wanted."""

    uuid: Annotated[str | None, UUID, "berth makes one for a new provider without it."] = None
    name: Annotated[
        str | None,
        {"type": "string", "minLength": 1, "maxLength": PROVIDER_NAME_LENGTH_MAX},
        "Required for a new provider.",
    ] = None
    parent: Annotated[
        Sometimes[str | None],
        {"type": ["string", "null"], "minLength": 1},
        "The UUID or the name of a provider of the tree; null for the root. Left out, a provider"
        " stays where it is.",
    ] = UNSET
    inventories: Annotated[
        Mapping[str, JSONObject] | None,
        object_by(CLASS_NAME_PATTERN, closed_object(INVENTORY, required=("total",))),
    ] = None
    traits: Annotated[
        Names | None,
        {
            **list_of({**CLASS_NAME, "maxLength": NAME_LENGTH_MAX}),
            "uniqueItems": True,
        },
    ] = None
    aggregates: Annotated[
        Names | None,
        list_of({"type": "string", "minLength": 1}),
        "By UUID, by name, or as `key=value` if one aggregate has that label.",
    ] = None
    root: _Ignored = None
    generation: _Ignored = None
    usages: _Ignored = None
    drains: _Ignored = None


class TreeInput(Input):
    """The tree that is wanted."""

    providers: Annotated[
        Sequence[ProviderInput],
        {"minItems": 1, **counted("max_tree_providers")},
        "Each has a `uuid` or a `name`. Inventories, traits and aggregates that are given replace"
        " all that the provider has; those left out stay.",
    ]
    remove_missing: Annotated[
        bool, "Whether to remove the providers of the tree that are not listed."
    ] = False
    create_names: Annotated[
        bool, "Whether to create the custom traits and resource classes that do not exist."
    ] = False
    revision: _Ignored = None
    etag: _Ignored = None
    totals: _Ignored = None


BODY: Final = BodySchema(TreeInput)

EXAMPLE: Final = {
    "providers": [
        {"name": "cn1", "uuid": examples.PROVIDER, "parent": None},
        {
            "name": "cn1_numa0",
            "parent": "cn1",
            "inventories": {"VCPU": {"total": 32}},
            "traits": ["HW_NUMA_ROOT"],
        },
    ],
    "remove_missing": False,
    "create_names": False,
}


class Wanted(Struct, frozen=True):
    """A wanted tree, with the body that it was read from."""

    tree: WantedTree
    sent: Sequence[ProviderInput]

    @property
    def uuids(self) -> frozenset[ProviderUUID]:
        """The uuids in the body."""
        return frozenset(each.uuid for each in self.tree.providers if each.uuid is not None)

    def pointer_to_first(
        self, part: Literal["inventories", "traits"], names: Mapping[str, object]
    ) -> tuple[str, str]:
        """The first of some names in the body, and the pointer to it."""
        for place, provider in enumerate(self.sent):
            given = provider.traits if part == "traits" else provider.inventories
            for number, name in enumerate(given or ()):
                if name in names:
                    last = number if part == "traits" else name
                    return name, pointer_of(("providers", place, part, last))
        return next(iter(names)), "/providers"


def read_tree(call: Call, reference: str, snapshot: Snapshot) -> Wanted:
    """The tree that a body wants.

    Raises:
        Refused: 400.
    """
    body = BODY.read(call)
    references = References(snapshot)
    spellings: dict[AggregateUUID, str] = {}
    providers = [
        _provider(each, place, references, spellings) for place, each in enumerate(body.providers)
    ]
    tree = WantedTree(
        reference,
        providers,
        remove_missing=body.remove_missing,
        create_names=body.create_names,
        spellings=spellings,
    )
    return Wanted(tree, body.providers)


def _provider(
    sent: ProviderInput,
    place: int,
    references: References,
    spellings: dict[AggregateUUID, str],
) -> WantedProvider:
    at = ("providers", place)
    if sent.uuid is None and sent.name is None:
        raise refused(pointer_of(at), "lacks a uuid or a name")
    aggregates = None
    if sent.aggregates is not None:
        aggregates = frozenset(
            _aggregate(each, pointer_of((*at, "aggregates", number)), references, spellings)
            for number, each in enumerate(sent.aggregates)
        )
    return WantedProvider(
        None if sent.uuid is None else provider_uuid(sent.uuid),
        sent.name,
        sent.parent,
        None if sent.inventories is None else _inventories(sent.inventories, at),
        None if sent.traits is None else frozenset(sent.traits),
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
