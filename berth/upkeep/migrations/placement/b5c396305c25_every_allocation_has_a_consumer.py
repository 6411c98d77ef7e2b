# SPDX-License-Identifier: Apache-2.0
"""Check that every consumer with allocations has a record; changes nothing."""

from alembic import op
from sqlalchemy import column, distinct, exists, func, select, table

from berth.model.errors import SchemaError

revision = "b5c396305c25"
down_revision = "611cd6dffd7b"

_allocations = table("allocations", column("consumer_id"))
_consumers = table("consumers", column("uuid"))


def upgrade() -> None:
    """Refuse while a consumer is missing."""
    is_known = exists().where(_consumers.c.uuid == _allocations.c.consumer_id)
    without = op.get_bind().scalar(
        select(func.count(distinct(_allocations.c.consumer_id))).where(~is_known)
    )
    if without:
        raise SchemaError(
            f"{without} consumers have allocations but no record, which were all made a moment "
            f"ago: stop the original service, then upgrade again"
        )
