# SPDX-License-Identifier: Apache-2.0
"""Tells the service manager that started this process how it stands, as sd_notify(3) has it.

systemd sets NOTIFY_SOCKET for a unit of `Type=notify`, and then starts what needs berth once berth
answers, not before. Without a manager that asks for it nothing is said.
"""

import logging
import os
import socket
from typing import Final

LOG = logging.getLogger(__name__)

#: Where the manager listens: a path, or a name of the abstract namespace after an @.
NOTIFY_SOCKET: Final = "NOTIFY_SOCKET"

#: Microseconds after which the manager takes a silent service for dead.
WATCHDOG_USEC: Final = "WATCHDOG_USEC"

#: Seconds that a start may take after a wait, before it has to say more.
_EXTENDED_S: Final = 120.0


def tell_ready(status: str) -> None:
    """The service answers from now on; `status` is a line for `systemctl status`."""
    _tell(f"READY=1\nSTATUS={status}")


def tell_starting(status: str, seconds: float) -> None:
    """The start takes so many seconds more, and some to do what it waits for."""
    extended_us = int((seconds + _EXTENDED_S) * 1_000_000)
    _tell(f"EXTEND_TIMEOUT_USEC={extended_us}\nSTATUS={' '.join(status.split())}")


def tell_stopping(status: str = "finishing the requests in flight") -> None:
    """The service takes no more requests, and ends when those in flight are answered."""
    _tell(f"STOPPING=1\nSTATUS={status}")


def tell_alive() -> None:
    """The service goes on; a manager that has asked for it kills one that does not say so."""
    if alive_every_s() is not None:
        _tell("WATCHDOG=1")


def alive_every_s() -> float | None:
    """How often the manager is to be told that the service goes on; None: never."""
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
        LOG.warning("The service manager cannot be told at %s: %s", NOTIFY_SOCKET, error)
