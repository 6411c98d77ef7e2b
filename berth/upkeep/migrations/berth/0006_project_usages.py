# SPDX-License-Identifier: Apache-2.0
"""The counters of what projects use.

They are filled in afterwards: see 0007.
"""

import sqlalchemy as sa

from berth.upkeep.migrations.steps import create_index, create_table

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table and its index."""
    key = ("project_id", "user_id", "consumer_type_id", "first_class", "writer_id")
    create_table(
        "berth_project_usages",
        *(sa.Column(name, sa.Integer, primary_key=True, autoincrement=False) for name in key),
        *(sa.Column(f"used_{slot}", sa.BigInteger, nullable=False) for slot in range(4)),
        sqlite_with_rowid=False,
    )
    create_index("berth_project_usages_writer_id_idx", "berth_project_usages", ["writer_id"])
