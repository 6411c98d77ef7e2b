# SPDX-License-Identifier: Apache-2.0
"""Each usage has the generation at which berth last wrote it.

If the provider is at another one, another program has written to the database. The columns are
filled afterwards: see 0005. The previous release changes generations without it, which
`berth_writer.kept_seq` shows; what it has written so far needs no such mark.
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
