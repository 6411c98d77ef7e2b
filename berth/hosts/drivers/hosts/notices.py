# SPDX-License-Identifier: Apache-2.0
"""Notices for the operator, logged when they arise and not in every pass."""

from __future__ import annotations

import logging
from collections.abc import Iterable

LOG = logging.getLogger(__name__)


class Notices:
    """The notices about a host."""

    def __init__(self) -> None:
        #: The notices of the last pass, a sentence each.
        self.last: tuple[str, ...] = ()

    def tell(self, notices: Iterable[str]) -> None:
        """Log the notices that the previous pass did not have."""
        current = tuple(notices)
        for notice in current:
            if notice not in self.last:
                LOG.warning("%s", notice)
        self.last = current
