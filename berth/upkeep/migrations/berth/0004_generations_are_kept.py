# SPDX-License-Identifier: Apache-2.0
"""Each sum of usage keeps the generation at which berth last wrote it.

Where a provider has moved on without berth, another program has written to the database. The
columns are filled in afterwards: see 0005. The release before moves generations without it, which
`berth_writer.kept_seq` shows; what it had written by now needs no such mark.
"""

import sqlalchemy as sa
from alembic import op

from berth.upkeep.migrations.steps import has_column

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Add the columns."""
    if not has_column("berth_usages", "generation"):
        op.add_column("berth_usages", sa.Column("generation", sa.Integer))
    if not has_column("berth_writer", "kept_seq"):
        op.add_column(
            "berth_writer", sa.Column("kept_seq", sa.BigInteger, nullable=False, server_default="0")
        )
    op.execute("UPDATE berth_writer SET kept_seq = seq")
