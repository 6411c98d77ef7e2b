# SPDX-License-Identifier: Apache-2.0
"""Every sum of usage has a generation; nothing is changed.

As in 0003, they are written in many transactions, and only the revision says that it is done.
"""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Only the revision says it."""
