# SPDX-License-Identifier: Apache-2.0
"""Inventories of a provider.

Source: spec/rest-api.md 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from berth.api import audit, body, caching
from berth.api.audit import InventoryWrite
from berth.api.operations import inventories as schemas
from berth.api.paths import provider_uuid
from berth.api.rendering import answer, answer_empty
from berth.api.request import Request, Response, Services
from berth.index.providers import get_provider
from berth.model.errors import InvalidInput, InventoryCapacityInvalid
from berth.model.ids import Generation, ProviderUUID
from berth.model.inventory import ALLOCATION_RATIO_MAX, MAX_INT, Inventory
from berth.model.names import is_class_name
from berth.store import inventories as store

RESERVED_MAY_EQUAL_TOTAL_SINCE = 26


def list_inventories(services: Services, request: Request, response: Response, uuid: str) -> None:
    """List a provider's inventories."""
    provider = get_provider(services.index.snapshot(), provider_uuid(uuid))
    caching.stamp(request, response, provider.inventories_modified())
    _answer_all(response, provider.generation, provider.inventories())


def show_inventory(
    services: Services, request: Request, response: Response, uuid: str, resource_class: str
) -> None:
    """Show a provider's inventory of a class."""
    provider = get_provider(services.index.snapshot(), provider_uuid(uuid))
    inventory, modified = provider.inventory(resource_class)
    _answer_one(services, request, response, inventory, provider.generation, modified=modified)


def create_inventory(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Add an inventory to a provider."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(services.database, provider):
        record = body.read(request, schemas.CREATE)
        resource_class = record["resource_class"]
        inventory = decode(record)
        _check_capacity(provider, {resource_class: inventory}, request.microversion, creating=True)
    write = InventoryWrite(provider, {resource_class: inventory}, is_whole=False)
    generation = store.create_inventory(
        services.database,
        provider,
        resource_class,
        inventory,
        replaced=audit.replacing_inventories(request, write),
    )
    path = f"/resource_providers/{provider}/inventories/{resource_class}"
    response.set_header("location", request.location(path))
    _answer_one(services, request, response, inventory, generation, status=201)


def replace_inventories(
    services: Services, request: Request, response: Response, uuid: str
) -> None:
    """Replace a provider's inventories."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(services.database, provider) as seen_generation:
        wanted = body.read(request, schemas.REPLACE)
        seen = seen_generation.note(wanted["resource_provider_generation"])
        inventories = decode_all(wanted["inventories"])
        _check_capacity(provider, inventories, request.microversion, creating=False)
    write = InventoryWrite(provider, inventories, is_whole=True)
    generation = store.replace_inventories(
        services.database,
        provider,
        seen,
        inventories,
        replaced=audit.replacing_inventories(request, write),
    )
    if inventories:
        caching.stamp_now(services, request, response)
    else:
        caching.stamp(request, response, None)
    _answer_all(response, generation, inventories)


def update_inventory(
    services: Services, request: Request, response: Response, uuid: str, resource_class: str
) -> None:
    """Replace a provider's inventory of a class."""
    provider = provider_uuid(uuid)
    with body.report_missing_provider_first(services.database, provider) as seen_generation:
        record = body.read(request, schemas.UPDATE)
        seen = seen_generation.note(record["resource_provider_generation"])
        inventory = decode(record)
        _check_capacity(provider, {resource_class: inventory}, request.microversion, creating=False)
    write = InventoryWrite(provider, {resource_class: inventory}, is_whole=False)
    generation = store.update_inventory(
        services.database,
        provider,
        resource_class,
        seen,
        inventory,
        replaced=audit.replacing_inventories(request, write),
    )
    _answer_one(services, request, response, inventory, generation)


def delete_inventory(
    services: Services, request: Request, response: Response, uuid: str, resource_class: str
) -> None:
    """Delete a provider's inventory of a class."""
    provider = provider_uuid(uuid)
    write = InventoryWrite(provider, {resource_class: None}, is_whole=False)
    replaced = audit.replacing_inventories(request, write)
    store.delete_inventory(services.database, provider, resource_class, replaced=replaced)
    answer_empty(response)


def delete_inventories(services: Services, request: Request, response: Response, uuid: str) -> None:
    """Delete a provider's inventories."""
    provider = provider_uuid(uuid)
    write = InventoryWrite(provider, {}, is_whole=True)
    replaced = audit.replacing_inventories(request, write)
    store.delete_inventories(services.database, provider, replaced=replaced)
    answer_empty(response)


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
            schemas.RECORD.check(record)
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


def _answer_all(
    response: Response, generation: Generation, inventories: Mapping[str, Inventory]
) -> None:
    answer(
        response,
        {
            "resource_provider_generation": generation,
            "inventories": {name: render(inventory) for name, inventory in inventories.items()},
        },
    )


def _answer_one(
    services: Services,
    request: Request,
    response: Response,
    inventory: Inventory,
    generation: Generation,
    *,
    modified: datetime | None = None,
    status: int = 200,
) -> None:
    caching.stamp_or_now(services, request, response, modified)
    shown = {**render(inventory), "resource_provider_generation": generation}
    answer(response, shown, status=status)
