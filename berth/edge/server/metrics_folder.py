# SPDX-License-Identifier: Apache-2.0
"""The folder in which the workers share their metrics while the service runs.

It is in memory where possible, because every request writes to it. The counts of a worker that has
exited stay in it, so each run of the service has its own folder and removes it at the end. A
service that is killed leaves its folder behind; the next one removes every folder without a lock.
"""

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from berth.config import METRICS_FOLDER, ConfigurationError

_MEMORY: Final = Path("/dev/shm")
_PREFIX: Final = "berth-metrics-"

#: A younger folder may have been created just now, and not be locked yet.
_ORPHAN_S_MIN: Final = 60.0


@contextmanager
def metrics_folder(memory: Path = _MEMORY) -> Iterator[Path]:
    """Create the folder, and name it in the environment of this process and its workers.

    If the environment already names a folder, the new one is created inside it.

    Raises:
        ConfigurationError: it cannot be created.
    """
    named = os.environ.get(METRICS_FOLDER)
    place = Path(named) if named else _place(memory)
    _remove_orphans(place)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    except OSError as error:
        raise ConfigurationError(
            f"cannot create a directory for metrics in {place}: "
            f"{(error.strerror or str(error)).lower()}"
        ) from error
    # The workers hold it too: they outlive a killed parent for a moment.
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        os.environ[METRICS_FOLDER] = str(folder)
        yield folder
    finally:
        if named is None:
            os.environ.pop(METRICS_FOLDER, None)
        else:
            os.environ[METRICS_FOLDER] = named
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _place(memory: Path) -> Path:
    if memory.is_dir() and os.access(memory, os.W_OK | os.X_OK):
        return memory
    return Path(tempfile.gettempdir())


def _remove_orphans(place: Path) -> None:
    """Remove the folders of services that were killed."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or another process removes it too
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_mtime < time.time() - _ORPHAN_S_MIN:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
