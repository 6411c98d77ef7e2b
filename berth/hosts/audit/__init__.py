# SPDX-License-Identifier: Apache-2.0
"""Finds orphaned allocations and providers without a host, and removes them.

The service does not know which guests and hosts exist. The operator lists them, and the audit
checks only what a list covers. Anything that is not known to be wrong is left alone.
Source: spec/compute-side.md 7, rows 1 to 3.
"""

from berth.hosts.audit.findings import Finding, Known, excess, find, missing_hosts, suspects
from berth.hosts.audit.world import (
    Amounts,
    Consumers,
    World,
    read_consumers,
    read_inventories,
    read_world,
)

__all__ = [
    "Amounts",
    "Consumers",
    "Finding",
    "Known",
    "World",
    "excess",
    "find",
    "missing_hosts",
    "read_consumers",
    "read_inventories",
    "read_world",
    "suspects",
]
