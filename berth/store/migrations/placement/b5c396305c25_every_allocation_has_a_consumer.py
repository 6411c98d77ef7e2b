# SPDX-License-Identifier: Apache-2.0
"""Go on only when every allocation has a consumers row; nothing is changed."""

from alembic import op
from sqlalchemy import column, distinct, func, select, table

from berth.model.errors import SchemaError

revision = "b5c396305c25"
down_revision = "611cd6dffd7b"

_allocations = table("allocations", column("consumer_id"))
_consumers = table("consumers", column("uuid"))


def upgrade() -> None:
    """Refuse while a consumer is missing."""
    known = select(_consumers.c.uuid)
    without = op.get_bind().scalar(
        select(func.count(distinct(_allocations.c.consumer_id))).where(
            _allocations.c.consumer_id.not_in(known)
        )
    )
    if without:
        raise SchemaError(
            f"{without} consumers have allocations but no consumers row: run the original's "
            f"`placement-manage db online_data_migrations`, then upgrade again"
        )
