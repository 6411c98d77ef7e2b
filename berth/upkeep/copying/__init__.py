# SPDX-License-Identifier: Apache-2.0
"""Copies a database into another one, of the same or another engine.

All rows of OpenStack Placement's tables are copied with their ids and times, and so are those of
berth's tables, except for what is computed from others. The target has an identity of its own. An
interrupted copy continues where it stopped, and a copy is complete only when both sides have been
read back and compared.
"""

from berth.upkeep.copying.preparation import CopyRefused
from berth.upkeep.copying.run import Difference, Outcome, copy_database

__all__ = ["CopyRefused", "Difference", "Outcome", "copy_database"]
