# SPDX-License-Identifier: Apache-2.0
"""Applications with a configuration of their own, in this process."""

from pathlib import Path

from berth import config, deploy
from tests.client import Client


def serve(folder: Path, settings: str = "", *, strategy: str = "noauth2") -> Client:
    """A client of a fresh application, configured by a placement.conf in this folder.

    Args:
        settings: what the file says besides the authentication and the database.
        strategy: the authentication.
    """
    placement_conf = folder / "placement.conf"
    placement_conf.write_text(
        f"[api]\nauth_strategy = {strategy}\n"
        # Tests sweep when they want to.
        "[berth]\nlease_sweep_seconds = 0\n"
        "[placement_database]\n"
        f"connection = sqlite:///{folder / 'placement.db'}\n"
        "sync_on_startup = True\n"
        "sqlite_synchronous = False\n" + settings
    )
    return Client.of(deploy.load_application(config.load([str(placement_conf)])))
