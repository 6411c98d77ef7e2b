# SPDX-License-Identifier: Apache-2.0
"""A whole database copied into another, of the same engine or of another one.

All rows of the original's tables go over with their ids and times; berth's own tables are made anew
from them. A copy that was interrupted goes on where it was, and nothing is called a copy before
both sides have been read back and found to be the same.
"""

from berth.upkeep.copying.comparison import Difference
from berth.upkeep.copying.preparation import CopyRefused
from berth.upkeep.copying.run import Outcome, copy_database

__all__ = ["CopyRefused", "Difference", "Outcome", "copy_database"]
