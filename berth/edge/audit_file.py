# SPDX-License-Identifier: Apache-2.0
"""A file to which several processes append whole lines, and which may be rotated at any time.

Each line is one write to a file that is opened to append, so lines of different processes never
mix. Before each line the file at the path is compared with the open one: after a rotation by
renaming, or if the file was removed, the line starts the new file.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Final

#: A new file is private to its owner: it shows who did what.
_MODE: Final = 0o600
_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC


class AuditFile:
    """The file at a path, for all threads of this process.

    Raises:
        OSError: it cannot be opened, or created.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._lock = threading.Lock()
        self._descriptor, self._identity = _open(path)
        #: Whether the last line was only written in part, because the disk is full.
        self._is_torn = False

    def append(self, line: bytes) -> None:
        """Append a line, which must end in a newline.

        Raises:
            OSError: the line was not written, or only in part.
        """
        with self._lock:
            self._follow()
            text = b"\n" + line if self._is_torn else line
            written = os.write(self._descriptor, text)
            self._is_torn = written < len(text) and (written > 0 or self._is_torn)
            if written < len(text):
                raise OSError("only a part of the line was written")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._descriptor)

    def _follow(self) -> None:
        """Open the file again if another one, or none, is at the path."""
        try:
            status = os.stat(self.path)
            if (status.st_dev, status.st_ino) == self._identity:
                return
        except FileNotFoundError:
            pass
        descriptor, self._identity = _open(self.path)
        os.close(self._descriptor)
        self._descriptor, self._is_torn = descriptor, False


def _open(path: Path) -> tuple[int, tuple[int, int]]:
    """Open a file to append, and identify it by its device and inode."""
    try:
        descriptor = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, _MODE)
        os.fchmod(descriptor, _MODE)
    except FileExistsError:
        # Also if another process has just created it.
        descriptor = os.open(path, _FLAGS | os.O_CREAT, _MODE)
    status = os.fstat(descriptor)
    return descriptor, (status.st_dev, status.st_ino)
