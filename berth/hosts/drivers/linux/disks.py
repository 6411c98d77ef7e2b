# SPDX-License-Identifier: Apache-2.0
"""How much disk a host offers, and of which kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from berth.hosts.drivers.linux.files import HostFiles
from berth.hosts.errors import BadConfiguration

_GIB = 2**30


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system on offer."""

    gib: int
    #: The trait of its device, if the kernel knows it.
    trait: str | None


@dataclass(frozen=True, slots=True)
class FileSystem:
    """The kernel's data on a directory's file system."""

    size: int
    #: The major and minor number of its device.
    device: tuple[int, int]


#: Reads a directory's file system; OSError if there is none. Tests replace it.
Measure = Callable[[Path], FileSystem]


def measure(directory: Path) -> FileSystem:
    """Ask the running kernel."""
    stats = os.statvfs(directory)
    device = directory.stat().st_dev
    return FileSystem(stats.f_frsize * stats.f_blocks, (os.major(device), os.minor(device)))


def read_disk(files: HostFiles, directory: Path, measure: Measure) -> Disk:
    """Read the file system of one of the host's directories.

    Raises:
        BadConfiguration: there is no such directory.
    """
    try:
        size_bytes = measure(files.path(str(directory).lstrip("/")))
    except OSError as error:
        raise BadConfiguration(
            [f"options.disk: cannot read {directory}: {error.strerror}"]
        ) from error
    return Disk(size_bytes.size // _GIB, _trait(files, size_bytes.device))


_BY_ROTATION: Final = {"0": "STORAGE_DISK_SSD", "1": "STORAGE_DISK_HDD"}

#: The traits of disk types.
DISK_TRAITS: Final = frozenset(_BY_ROTATION.values())


def _trait(files: HostFiles, device: tuple[int, int]) -> str | None:
    """The trait of a device; for a partition, that of its disk."""
    path = files.path(f"sys/dev/block/{device[0]}:{device[1]}").resolve()
    for place in (path, path.parent):
        try:
            turns = (place / "queue/rotational").read_text(errors="replace").strip()
        except OSError:
            continue
        return _BY_ROTATION.get(turns)
    return None
