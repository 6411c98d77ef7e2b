# SPDX-License-Identifier: Apache-2.0
"""`POST /reshaper` (1.30): move inventories and allocations in one transaction.

Source: spec/rest-api.md 12.
"""

from __future__ import annotations

from berth.api import allocations, audit, body, inventories
from berth.api.audit import InventoryWrite
from berth.api.operations.reshaper import RESHAPE
from berth.api.rendering import answer_empty
from berth.api.request import Request, Response, Services
from berth.model.ids import Generation, ProviderUUID, parse_uuid_36
from berth.store import reshape as store
from berth.store.reshape import ReshapedInventories


def reshape(services: Services, request: Request, response: Response) -> None:
    """Replace the inventories of some providers and the allocations of some consumers."""
    wanted = body.read(request, RESHAPE.at(request.microversion))
    reshaped = {
        ProviderUUID(parse_uuid_36(key) or key): record
        for key, record in wanted["inventories"].items()
    }
    all_inventories = [
        ReshapedInventories(
            provider_uuid=provider,
            # COMPAT: 1.0 stays 1.0: a refusal quotes what was sent.
            seen=Generation(record["resource_provider_generation"]),
            inventories=inventories.decode_all(record["inventories"]),
        )
        for provider, record in reshaped.items()
    ]
    writes = allocations.decode_all(wanted["allocations"], request.microversion, services.settings)
    if services.rights is not None:
        services.rights.check_references(*reshaped)
        services.rights.check_writes(writes, moving=True)
    store.reshape(
        services.database,
        all_inventories,
        writes,
        replaced_allocations=audit.claiming(request, writes),
        replaced_inventories=audit.replacing_inventories(
            request,
            *(
                InventoryWrite(each.provider_uuid, each.inventories, is_whole=True)
                for each in all_inventories
            ),
        ),
    )
    answer_empty(response)
