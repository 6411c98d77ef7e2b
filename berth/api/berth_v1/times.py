# SPDX-License-Identifier: Apache-2.0
"""Times in answers of `/berth/v1`."""

from __future__ import annotations

from datetime import datetime


def shown_time(moment: datetime) -> str:
    """A time of the database, with seconds, as RFC 3339 writes it."""
    return f"{moment.replace(microsecond=0).isoformat()}Z"


def shown_lease(expires_at: datetime | None) -> dict[str, str] | None:
    """A lease as the answers about its consumer show it; None: there is none."""
    return None if expires_at is None else {"expires_at": shown_time(expires_at)}
