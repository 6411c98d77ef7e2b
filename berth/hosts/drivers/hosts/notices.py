# SPDX-License-Identifier: Apache-2.0
"""What an operator should know of a host: each thing is said when it comes up, not in each pass."""

from __future__ import annotations

import logging
from collections.abc import Iterable

LOG = logging.getLogger(__name__)


class Notices:
    """What was told of a host."""

    def __init__(self) -> None:
        #: What the last pass found, a sentence each.
        self.last: tuple[str, ...] = ()

    def tell(self, notices: Iterable[str]) -> None:
        """Warn of what was not so after the pass before."""
        found = tuple(notices)
        for notice in found:
            if notice not in self.last:
                LOG.warning("%s", notice)
        self.last = found
