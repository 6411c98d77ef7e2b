# SPDX-License-Identifier: Apache-2.0
"""Durations as people type them, such as `10m`, and times as they read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import click

from berth.cli.columns import amount
from berth.model.bounds import LEASE_SECONDS_MAX

_DURATION: Final = re.compile(r"(?P<number>[0-9]{1,9})(?P<unit>[smhd]?)")
_SECONDS: Final = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def lease_seconds(text: str) -> int:
    """The seconds of a time such as `90`, `90s`, `10m`, `2h` or `1d`, as long as a lease may be.

    Raises:
        BadParameter: it is no such time.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise click.BadParameter(f"{text} is not a time such as 90s, 10m or 2h")
    seconds = int(match["number"]) * _SECONDS[match["unit"]]
    if not 1 <= seconds <= LEASE_SECONDS_MAX:
        raise click.BadParameter(f"{text} is not from 1 to {amount(LEASE_SECONDS_MAX)} seconds")
    return seconds


def utc_time(moment: datetime) -> str:
    """A time, such as `14:32 UTC`; with its date if that is not today's."""
    moment = moment.astimezone(UTC)
    is_today = moment.date() == datetime.now(UTC).date()
    return f"{moment:%H:%M} UTC" if is_today else f"{moment:%Y-%m-%d %H:%M} UTC"


def time_left(seconds: int) -> str:
    """A number of seconds in its two largest units, such as `9m 30s`."""
    parts = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _SECONDS[unit])
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
