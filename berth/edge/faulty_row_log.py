# SPDX-License-Identifier: Apache-2.0
"""Logs the rows that the index leaves out (`berth.index.faulty_rows`)."""

from __future__ import annotations

import logging
from collections.abc import Collection

LOG = logging.getLogger(__name__)


class FaultyRowLog:
    """Logs each faulty row once; again if it was repaired in between."""

    def __init__(self) -> None:
        self._logged: frozenset[str] = frozenset()

    def note(self, sentences: Collection[str]) -> None:
        """Log those of the faulty rows that there were not before.

        Args:
            sentences: what is wrong, of every faulty row.
        """
        for sentence in sentences:
            if sentence not in self._logged:
                LOG.warning("Faulty row: %s. `berth db check` says more.", sentence)
        self._logged = frozenset(sentences)
