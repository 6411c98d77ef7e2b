# SPDX-License-Identifier: Apache-2.0
"""Loads the demo fleet into both databases of a `BothWays`."""

from __future__ import annotations

from pathlib import Path

from berth.cli.fleet.access import Access
from berth.cli.fleet.demo_fleet import demo_fleet
from berth.cli.fleet.demo_loading import load
from berth.cli.options import ConfigurationSource


def load_demo(url: str, conf: Path) -> None:
    """Make the demo fleet in a service, and in the database of a configuration."""
    for access in (
        Access(url, "admin", None, ConfigurationSource((), (), False)),
        Access(None, None, None, ConfigurationSource((str(conf),), (), False)),
    ):
        with access.client() as client:
            load(client, demo_fleet())
