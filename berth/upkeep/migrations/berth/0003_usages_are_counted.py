# SPDX-License-Identifier: Apache-2.0
"""All sums of usage have been counted; nothing is changed.

They are counted in many transactions, after the tables have been made. Until the last one the
database must not be served: it stays at the revision before, and an upgrade goes on where another
was broken off.
"""

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Only the revision says it."""
