# SPDX-License-Identifier: Apache-2.0
"""The request of each consumer that `POST /berth/v1/place` placed.

The previous release ignores it: a request says of which call it is, and what that release writes
is another call.
"""

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import has_column

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    """Add the column."""
    if not has_column("berth_placements", "request"):
        op.add_column("berth_placements", sa.Column("request", sa.Text))
