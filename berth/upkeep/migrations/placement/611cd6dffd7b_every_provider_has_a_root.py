# SPDX-License-Identifier: Apache-2.0
"""Check that every provider has a root; changes nothing."""

from alembic import op
from sqlalchemy import column, func, select, table

from berth.model.errors import SchemaError

revision = "611cd6dffd7b"
down_revision = "b4ed3a175331"

_providers = table("resource_providers", column("root_provider_id"))


def upgrade() -> None:
    """Refuse while a root is missing."""
    count = select(func.count()).select_from(_providers)
    without = op.get_bind().scalar(count.where(_providers.c.root_provider_id.is_(None)))
    if without:
        raise SchemaError(
            f"{without} resource providers have no root_provider_id, and none can be found by "
            f"their parents, which do not exist or are below them: this is damage, so go back to a "
            f"copy, or set parent_provider_id and root_provider_id of these rows by hand"
        )
