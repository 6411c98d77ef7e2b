# SPDX-License-Identifier: Apache-2.0
"""For hosts: what they offer as trees of providers, and how that reaches the service.

A driver knows a host and edits a `ProviderTree`; the `ReportClient` reads such trees from the
service and writes the difference back, over HTTP or in this process (`berth.direct`); the tracker
runs both, at start-up and from time to time.
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
