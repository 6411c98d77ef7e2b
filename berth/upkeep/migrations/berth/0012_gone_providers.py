# SPDX-License-Identifier: Apache-2.0
"""The journal keeps the UUIDs of deleted providers, for those who follow the fleet.

The previous release writes rows without it. After a deletion by that release, those who follow must
read the whole fleet again.
"""

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import has_column

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Add the column."""
    if not has_column("berth_journal", "gone_uuid"):
        op.add_column("berth_journal", sa.Column("gone_uuid", sa.String(36)))
