# SPDX-License-Identifier: Apache-2.0
"""Notifies the service manager of this process's state, with the protocol of sd_notify(3).

systemd sets NOTIFY_SOCKET for a unit of `Type=notify`, and starts units that need berth once berth
answers. Without NOTIFY_SOCKET, these functions do nothing.
"""

import logging
import os
import socket
from typing import Final

LOG = logging.getLogger(__name__)

#: The address of the manager: a path, or @ and a name in the abstract namespace.
NOTIFY_SOCKET: Final = "NOTIFY_SOCKET"

#: Microseconds after which the manager considers a silent service dead.
WATCHDOG_USEC: Final = "WATCHDOG_USEC"

#: Seconds that a start may take after a wait, before it must notify again.
_EXTENDED_S: Final = 120.0


def tell_ready(status: str) -> None:
    """The service is ready; `systemctl status` shows the `status` line."""
    _tell(f"READY=1\nSTATUS={status}")


def tell_starting(status: str, seconds: float) -> None:
    """The start takes this many seconds more, plus the time for what it waits for."""
    extended_us = int((seconds + _EXTENDED_S) * 1_000_000)
    _tell(f"EXTEND_TIMEOUT_USEC={extended_us}\nSTATUS={' '.join(status.split())}")


def tell_stopping(status: str = "finishing the requests in flight") -> None:
    """The service accepts no more requests, and exits when those in flight are answered."""
    _tell(f"STOPPING=1\nSTATUS={status}")


def tell_alive() -> None:
    """The service is alive; a manager with a watchdog kills one that does not notify."""
    if alive_every_s() is not None:
        _tell("WATCHDOG=1")


def alive_every_s() -> float | None:
    """Seconds between two notifications that the service is alive; None: not needed."""
    limit_us = os.environ.get(WATCHDOG_USEC, "")
    return int(limit_us) / 2_000_000 if limit_us.isdigit() and int(limit_us) else None


def _tell(message: str) -> None:
    address = os.environ.get(NOTIFY_SOCKET)
    if not address:
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.connect(address)
            manager.send(message.encode())
    except OSError as error:
        LOG.warning("Cannot notify the service manager at %s: %s", NOTIFY_SOCKET, error)
