# SPDX-License-Identifier: Apache-2.0
"""Lets only one process at a time write an agent's state directory.

Two processes would mistake each other's notes for their own. The kernel releases a lock when its
process ends, in whatever way. The file stays, because deleting it could delete the next holder's.
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
    """Locks state directories until `close`."""

    def __init__(self) -> None:
        #: The descriptors of the locked files, by directory.
        self._descriptors: dict[Path, int] = {}

    def hold(self, state_dir: Path) -> None:
        """Lock a directory, creating it if needed; locking it again does nothing.

        A directory in which nothing can be written is not locked, and the log says so: writing
        state to it fails anyway.

        Raises:
            StateDirInUse: another process has the lock.
        """
        if state_dir in self._descriptors:
            return
        try:
            self._descriptors[state_dir] = _locked(state_dir)
        except OSError as error:
            LOG.warning(
                "Cannot lock the state directory %s against a second agent: %s",
                state_dir,
                error.strerror or error,
            )

    def close(self) -> None:
        """Release all locks."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


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
