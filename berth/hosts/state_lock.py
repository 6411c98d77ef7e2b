# SPDX-License-Identifier: Apache-2.0
"""Of the programs that write what a host's agent keeps, one at a time.

Two side by side would take each other's notes for their own. The kernel lets go of a lock when its
holder ends, in whatever way; the file stays, since who removes it may remove that of the next.
"""

from __future__ import annotations

import fcntl
import logging
import os
from pathlib import Path

from berth.hosts.errors import StateDirInUse
from berth.hosts.whole_files import hand_over

LOG = logging.getLogger(__name__)


class StateLock:
    """Locks state directories, each until `close`."""

    def __init__(self) -> None:
        #: The descriptors of the files that are locked, by their directories.
        self._held: dict[Path, int] = {}

    def hold(self, state_dir: Path) -> None:
        """Lock a directory, which is made where there is none; again is as once.

        One in which nothing can be written is not locked, and the log says so: what must be kept
        there fails by itself.

        Raises:
            StateDirInUse: another has it.
        """
        if state_dir in self._held:
            return
        try:
            self._held[state_dir] = _locked(state_dir)
        except OSError as error:
            LOG.warning("Another agent beside this one would not be noticed: %s", str(error))

    def close(self) -> None:
        """Let go of all."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()


def _locked(state_dir: Path) -> int:
    state_dir.mkdir(parents=True, exist_ok=True)
    path = state_dir / "lock"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        hand_over(path)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        holder = os.pread(descriptor, 20, 0).decode(errors="replace").strip()
        os.close(descriptor)
        raise StateDirInUse(state_dir, holder) from error
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
