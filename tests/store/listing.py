# SPDX-License-Identifier: Apache-2.0
"""Lists of providers as the index gives them, each compared with its twin."""

from berth.candidates.providers import find_providers
from berth.index import Index
from berth.index.snapshot import location_of
from berth.model.filters import ProviderFilters
from berth.model.ids import ProviderUUID
from berth.model.provider import Provider
from berth.store.engine.database import Database
from berth.store.providers import get_provider
from tests import sql_reads


def list_providers(db: Database, filters: ProviderFilters) -> list[Provider]:
    """The providers that match all filters, in the order of their creation."""
    snapshot = Index(db).snapshot()
    places = map(location_of, find_providers(snapshot, filters).tolist())
    providers = [
        get_provider(db, ProviderUUID(snapshot.block(at.block_id).uuid(at.node, at.row)))
        for at in places
        if at is not None
    ]
    assert providers == sql_reads.list_providers(db, filters)
    return providers
