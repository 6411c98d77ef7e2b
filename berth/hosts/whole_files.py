# SPDX-License-Identifier: Apache-2.0
"""Writes small files atomically, and gives them to the right user.

Root may run a command in the state directory of an agent that is not root. The agent's user must
own what root creates there, and must not be able to redirect root elsewhere with a link.
"""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file atomically and durably, creating its folder: readers see the old or the new
    content.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.new")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with open(os.open(beside, flags, 0o666), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    hand_over(beside)
    beside.replace(path)
    keep_names(path.parent)


def hand_over(path: Path) -> None:
    """Give what root has just created to the owner of its folder.

    Raises:
        OSError: it cannot be given.
    """
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def keep_names(folder: Path) -> None:
    """Make sure that the names in a folder survive a crash.

    Raises:
        OSError: they cannot be written.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
