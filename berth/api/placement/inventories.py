# SPDX-License-Identifier: Apache-2.0
"""Inventories of a provider.

Source: spec/rest-api.md 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from berth.api import answers, body, examples
from berth.api.contract import DONE, Answer, Body, Contract, Dated, always, component, ref, shows
from berth.api.paths import provider_uuid
from berth.api.request import Call
from berth.api.schema import JSONSchema, Schema
from berth.api.shapes import (
    CLASS_NAME_PATTERN,
    GENERATION,
    INTEGER,
    INVENTORY,
    closed_object,
    exact_object,
    object_by,
)
from berth.index.providers import get_provider
from berth.model.errors import InvalidInput, InventoryCapacityInvalid
from berth.model.ids import Generation, ProviderUUID
from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT, Inventory
from berth.model.names import is_class_name
from berth.store import inventories as store

_SEEN = {"resource_provider_generation": INTEGER}
_CLASS = {"resource_class": {"type": "string", "pattern": CLASS_NAME_PATTERN}}

CREATE = Schema(
    closed_object({**INVENTORY, **_SEEN, **_CLASS}, required=("total", "resource_class"))
)

UPDATE = Schema(
    closed_object({**INVENTORY, **_SEEN}, required=("total", "resource_provider_generation"))
)

_RECORD = closed_object({**_SEEN, **INVENTORY}, required=("total",))

#: COMPAT: records under impossible resource class names are checked after the body.
RECORD = Schema(_RECORD)

#: The whole set; a generation inside a record is accepted but ignored.
REPLACEMENT: JSONSchema = closed_object(
    {
        **_SEEN,
        "inventories": {
            "type": "object",
            "patternProperties": {CLASS_NAME_PATTERN: _RECORD},
        },
    },
    required=("resource_provider_generation", "inventories"),
)
REPLACE = Schema(REPLACEMENT)

_SHOWN_RECORD = exact_object(
    {**dict.fromkeys(INVENTORY, INTEGER), "allocation_ratio": {"type": "number"}}
)
_INVENTORY_RECORD = component("InventoryRecord", _SHOWN_RECORD)
_INVENTORY = component(
    "Inventory",
    closed_object(
        {**_SHOWN_RECORD["properties"], "resource_provider_generation": GENERATION},
        required=(*_SHOWN_RECORD["required"], "resource_provider_generation"),
    ),
    example={**examples.RECORD, **examples.GENERATION},
)
_INVENTORIES = component(
    "Inventories",
    exact_object(
        {
            "resource_provider_generation": GENERATION,
            "inventories": object_by(CLASS_NAME_PATTERN, ref("InventoryRecord")),
        }
    ),
    example={**examples.GENERATION, "inventories": {"VCPU": examples.RECORD}},
    parts=(_INVENTORY_RECORD,),
)

_CHANGED = "The generation is outdated"
_IN_USE = "The inventory has allocations, or another request changed the provider."


RESERVED_MAY_EQUAL_TOTAL_SINCE = 26


@Contract(summary="List a provider's inventories", answers=shows(_INVENTORIES, Dated.WHERE_KNOWN))
def list_inventories(call: Call, uuid: str) -> dict[str, Any]:
    """List a provider's inventories."""
    provider = get_provider(call.services.index.snapshot(), provider_uuid(uuid))
    answers.stamp(call, provider.inventories_modified())
    return _all_shown(provider.generation, provider.inventories())


@Contract(summary="Show a provider's inventory of a resource class", answers=shows(_INVENTORY))
def show_inventory(call: Call, uuid: str, resource_class: str) -> dict[str, Any]:
    """Show a provider's inventory of a class."""
    provider = get_provider(call.services.index.snapshot(), provider_uuid(uuid))
    inventory, modified = provider.inventory(resource_class)
    return _shown(call, inventory, provider.generation, modified)


@Contract(
    summary="Add an inventory to a provider",
    body=Body(always(CREATE), always({"resource_class": "VCPU", **examples.RECORD})),
    answers=(Answer(201, _INVENTORY, dated=Dated.ALWAYS, located=True, means="Created."),),
    conflict="The provider already has an inventory of the class, or another request changed "
    "the provider.",
)
def create_inventory(call: Call, uuid: str) -> dict[str, Any]:
    """Add an inventory to a provider."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(call.services.database, provider):
        record = body.read(call, CREATE)
        resource_class = record["resource_class"]
        inventory = decode(record)
        _check_capacity(provider, {resource_class: inventory}, call.microversion, creating=True)
    generation = store.create_inventory(
        call.services.database,
        provider,
        resource_class,
        inventory,
    )
    path = f"/resource_providers/{provider}/inventories/{resource_class}"
    call.headers["location"] = call.location(path)
    return _shown(call, inventory, generation)


@Contract(
    summary="Replace a provider's inventories",
    details="Missing fields get their defaults; the request does not merge with the old "
    "inventories.",
    body=Body(
        always(REPLACE),
        always(
            {
                **examples.GENERATION,
                "inventories": {
                    "VCPU": {"total": 64, "reserved": 2, "allocation_ratio": 4.0},
                    "MEMORY_MB": {"total": 262144, "step_size": 1024},
                },
            }
        ),
    ),
    answers=shows(_INVENTORIES, Dated.WHERE_KNOWN, means="The new inventories."),
    conflict=f"{_CHANGED}, or a class that the request removes has allocations.",
)
def replace_inventories(call: Call, uuid: str) -> dict[str, Any]:
    """Replace a provider's inventories."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(call.services.database, provider) as seen_generation:
        wanted = body.read(call, REPLACE)
        seen = seen_generation.note(wanted["resource_provider_generation"])
        inventories = decode_all(wanted["inventories"])
        _check_capacity(provider, inventories, call.microversion, creating=False)
    generation = store.replace_inventories(
        call.services.database,
        provider,
        seen,
        inventories,
    )
    if inventories:
        answers.stamp_now(call)
    else:
        answers.stamp(call, None)
    return _all_shown(generation, inventories)


@Contract(
    summary="Replace a provider's inventory of a resource class",
    body=Body(always(UPDATE), always({**examples.GENERATION, **examples.RECORD})),
    answers=shows(_INVENTORY, means="The new inventory."),
    conflict=f"{_CHANGED}.",
)
def update_inventory(call: Call, uuid: str, resource_class: str) -> dict[str, Any]:
    """Replace a provider's inventory of a class."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(call.services.database, provider) as seen_generation:
        record = body.read(call, UPDATE)
        seen = seen_generation.note(record["resource_provider_generation"])
        inventory = decode(record)
        _check_capacity(provider, {resource_class: inventory}, call.microversion, creating=False)
    generation = store.update_inventory(
        call.services.database,
        provider,
        resource_class,
        seen,
        inventory,
    )
    return _shown(call, inventory, generation)


@Contract(
    summary="Delete a provider's inventory of a resource class",
    answers=DONE,
    conflict=_IN_USE,
)
def delete_inventory(call: Call, uuid: str, resource_class: str) -> None:
    """Delete a provider's inventory of a class."""
    provider = provider_uuid(uuid)
    store.delete_inventory(call.services.database, provider, resource_class)


@Contract(
    summary="Delete all of a provider's inventories",
    answers=DONE,
    conflict=_IN_USE,
)
def delete_inventories(call: Call, uuid: str) -> None:
    """Delete a provider's inventories."""
    provider = provider_uuid(uuid)
    store.delete_inventories(call.services.database, provider)


def decode(record: Mapping[str, Any]) -> Inventory:
    """Decode a record that passed the schema; omitted fields take their defaults.

    Raises:
        InvalidInput: the ratio is outside the range that can be stored.
    """
    ratio = record.get("allocation_ratio", 1.0)
    # The schema has only an upper bound. Negative ratios have always been accepted, but not
    # NaN, nor those that no column can store.
    if not ratio >= -ALLOCATION_RATIO_MAX:
        raise InvalidInput(f"An allocation_ratio must be at least -{ALLOCATION_RATIO_MAX}.")
    return Inventory(
        total=int(record["total"]),
        reserved=int(record.get("reserved", 0)),
        min_unit=int(record.get("min_unit", 1)),
        max_unit=int(record.get("max_unit", MAX_INT)),
        step_size=int(record.get("step_size", 1)),
        allocation_ratio=float(ratio),
    )


def decode_all(records: Mapping[str, Mapping[str, Any]]) -> dict[str, Inventory]:
    """Inventories by resource class name.

    Raises:
        Refused: 400, a record with an impossible resource class name violates the schema.
        InvalidInput: as `decode`.
    """
    for resource_class, record in records.items():
        if not is_class_name(resource_class):
            RECORD.check(record)
    return {resource_class: decode(record) for resource_class, record in records.items()}


def render(inventory: Inventory) -> dict[str, float]:
    """The six fields of a record."""
    return {
        "total": inventory.total,
        "reserved": inventory.reserved,
        "min_unit": inventory.min_unit,
        "max_unit": inventory.max_unit,
        "step_size": inventory.step_size,
        "allocation_ratio": inventory.allocation_ratio,
    }


def _check_capacity(
    provider: ProviderUUID,
    inventories: Mapping[str, Inventory],
    microversion: int,
    *,
    creating: bool,
) -> None:
    may_equal = microversion >= RESERVED_MAY_EQUAL_TOTAL_SINCE
    least = 0 if may_equal else 1
    for resource_class, inventory in inventories.items():
        if inventory.capacity < least:
            raise InventoryCapacityInvalid(
                provider, resource_class, creating=creating, reserved_may_equal_total=may_equal
            )


def _all_shown(generation: Generation, inventories: Mapping[str, Inventory]) -> dict[str, Any]:
    return {
        "resource_provider_generation": generation,
        "inventories": {name: render(inventory) for name, inventory in inventories.items()},
    }


def _shown(
    call: Call, inventory: Inventory, generation: Generation, modified: datetime | None = None
) -> dict[str, Any]:
    answers.stamp_or_now(call, modified)
    return {**render(inventory), "resource_provider_generation": generation}
