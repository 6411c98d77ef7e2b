# SPDX-License-Identifier: Apache-2.0
"""Every usage has a generation; changes nothing.

As in 0003, they are written in many transactions, and the revision records that this is complete.
"""

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Do nothing: only the revision matters."""
