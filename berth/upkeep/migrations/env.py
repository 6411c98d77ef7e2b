# SPDX-License-Identifier: Apache-2.0
"""What Alembic runs for every command: the revisions, inside the caller's transaction.

`berth.upkeep.schema` hands over a connection with a transaction under way, so that all steps are
committed together or not at all, and the name of the version table.
"""

from alembic import context

_attributes = context.config.attributes

context.configure(connection=_attributes["connection"], version_table=_attributes["version_table"])
with context.begin_transaction():
    context.run_migrations()
