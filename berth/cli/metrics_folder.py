# SPDX-License-Identifier: Apache-2.0
"""The folder in which workers share what they count, from the start of the service to its end.

It lies in memory where that can be, because every request writes to it. What has died with a worker
stays counted; so one folder serves one run of the service, and goes with it. A service that is
killed leaves its folder behind, and the next one removes it: who lives holds a lock on its own.
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

#: One that is younger may be in the making, and not be locked yet.
_ORPHAN_S_MIN: Final = 60.0


@contextmanager
def metrics_folder(memory: Path = _MEMORY) -> Iterator[Path]:
    """Make the folder, and name it in this process's environment, and so in its workers'.

    Where the environment names a folder already, the new one is made inside.

    Raises:
        ConfigurationError: that cannot be.
    """
    named = os.environ.get(METRICS_FOLDER)
    place = Path(named) if named else _place(memory)
    _remove_orphans(place)
    try:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
    except OSError as error:
        raise ConfigurationError(
            f"no folder for metrics can be made in {place}: {error}"
        ) from error
    # Held by the workers too, which outlive a parent that is killed for a moment.
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
    """Remove the folders of those who were killed."""
    for folder in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or somebody removes it too
            lock = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                if os.fstat(lock).st_mtime < time.time() - _ORPHAN_S_MIN:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
