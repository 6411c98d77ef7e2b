# SPDX-License-Identifier: Apache-2.0
"""The counters of what projects use have been filled; nothing is changed.

As in 0003, only the revision says that it is done.
"""

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Only the revision says it."""
