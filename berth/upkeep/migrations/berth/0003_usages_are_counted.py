# SPDX-License-Identifier: Apache-2.0
"""All usages have been computed; changes nothing.

They are computed in many transactions after the tables were created. Until the last one the
database must not be served: it stays at the previous revision, and an upgrade continues where an
interrupted one stopped.
"""

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Do nothing: only the revision matters."""
