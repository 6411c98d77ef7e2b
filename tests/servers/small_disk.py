# SPDX-License-Identifier: Apache-2.0
"""A file system of a few MiB, for tests of a full disk."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.guard import the_guard
from tests.servers.process import account_for, make_directory, remove_directory


def why_not() -> str | None:
    """Why this user cannot create one, or None."""
    if os.getuid() != 0 or shutil.which("mount") is None:
        return "only root can mount a small file system"
    tried = subprocess.run(
        ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/tmp"],
        capture_output=True,
        check=False,
    )
    return None if tried.returncode == 0 else "this machine lets nobody mount a file system"


@contextmanager
def small_disk(mib: int) -> Iterator[Path]:
    """An empty directory on a file system of its own, of `mib` MiB, that every user can reach."""
    directory = make_directory(account_for())
    the_guard().watch("mount", directory)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=1777", "none", directory], check=True
    )
    try:
        yield directory
    finally:
        subprocess.run(["umount", "--lazy", directory], check=True)
        the_guard().forget("mount", directory)
        remove_directory(directory)


def fill(directory: Path) -> Path:
    """Fill it up; return the file that does, so that it can be removed."""
    ballast = directory / "ballast"
    size = 1 << 20
    with ballast.open("wb", buffering=0) as file:
        while size:
            try:
                file.write(bytes(size))
            except OSError:
                # Ever smaller pieces, until not a byte is left.
                size //= 2
    return ballast
