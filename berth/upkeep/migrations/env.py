# SPDX-License-Identifier: Apache-2.0
"""Alembic runs this for every command: it applies the revisions in the caller's transaction.

`berth.upkeep.schema` passes a connection with an open transaction, so that all steps are committed
together or not at all, and the name of the version table.
"""

from alembic import context

_attributes = context.config.attributes

context.configure(connection=_attributes["connection"], version_table=_attributes["version_table"])
with context.begin_transaction():
    context.run_migrations()
