# SPDX-License-Identifier: Apache-2.0
"""The fleet in memory: compact arrays that answer "what fits where?" without a query. See
docs/index-data-model.md."""

from berth.index.index import Index
from berth.index.snapshot import Snapshot

__all__ = ["Index", "Snapshot"]
