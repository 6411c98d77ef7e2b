# SPDX-License-Identifier: Apache-2.0
"""Small files of a host that are there wholly, or not at all; whose they are.

Root may run a command in the folder of an agent that is not root: what it makes there is to be the
agent's, and what the agent's user puts there must not lead root elsewhere.
"""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(path: Path, text: str) -> None:
    """Write a file, and its folder: whoever reads it, or a fall, finds the old one or the new one.

    Raises:
        OSError: it cannot be written.
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
    """Give what root has just made to whom its folder belongs.

    Raises:
        OSError: it cannot be given.
    """
    if os.geteuid() == 0:
        owner = path.parent.stat()
        os.chown(path, owner.st_uid, owner.st_gid, follow_symlinks=False)


def keep_names(folder: Path) -> None:
    """See that the names in a folder are there after whatever fall.

    Raises:
        OSError: they cannot be written.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
