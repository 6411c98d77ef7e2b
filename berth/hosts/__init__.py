# SPDX-License-Identifier: Apache-2.0
"""Reports what hosts offer, as trees of providers, to the service.

A driver examines a host and edits a `ProviderTree`. The `ReportClient` reads such trees from the
service and writes the differences back, over HTTP or in this process (`berth.direct`). The tracker
runs both, at start-up and periodically.
Source: spec/compute-side.md.
"""

from berth.hosts.errors import (
    BadProviderTree,
    Conflict,
    HealingNeeded,
    ReshapeFailed,
    ReshapeNeeded,
)
from berth.hosts.provider_tree import ProviderData, ProviderSubTree, ProviderTree

__all__ = [
    "BadProviderTree",
    "Conflict",
    "HealingNeeded",
    "ProviderData",
    "ProviderSubTree",
    "ProviderTree",
    "ReshapeFailed",
    "ReshapeNeeded",
]
