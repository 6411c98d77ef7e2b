# SPDX-License-Identifier: Apache-2.0
"""Providers, all of a list at once."""

from berth.model.filters import ProviderFilters
from berth.model.provider import Provider
from berth.store.engine.database import Database
from berth.store.providers import iter_providers


def list_providers(db: Database, filters: ProviderFilters) -> list[Provider]:
    """The providers that meet all the filters."""
    return [one for part in iter_providers(db, filters) for one in part]
