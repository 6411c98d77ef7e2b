# SPDX-License-Identifier: Apache-2.0
"""The usages and the counters of what projects use are filled in; changes nothing.

They are computed in many transactions after the tables were created. Until the last one the
database must not be served: it stays at the previous revision, and an upgrade continues where an
interrupted one stopped.
"""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Do nothing: only the revision matters."""
