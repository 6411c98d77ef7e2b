# SPDX-License-Identifier: Apache-2.0
"""The journal records whether only a provider's usage changed, as with every claim.

A reader then queries one table instead of four. The previous release writes rows without it, which
count as changes of everything.
"""

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import has_column

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column."""
    if has_column("berth_journal", "usage_only"):
        return
    op.add_column(
        "berth_journal",
        sa.Column("usage_only", sa.Boolean, nullable=False, server_default=sa.false()),
    )
