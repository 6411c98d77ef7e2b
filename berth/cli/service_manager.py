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


def tell_ready(status: str) -> None:
    """The service answers from now on; `status` is a line for `systemctl status`."""
    _tell(f"READY=1\nSTATUS={status}")


def tell_stopping() -> None:
    """The service takes no more requests, and ends when those in flight are answered."""
    _tell("STOPPING=1\nSTATUS=finishing the requests in flight")


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
