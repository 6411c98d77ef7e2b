# SPDX-License-Identifier: Apache-2.0
"""How much disk a host gives out, and whether it turns."""

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
    """The file system that is given out."""

    gib: int
    #: The trait of what it stands on, where the kernel tells.
    trait: str | None


@dataclass(frozen=True, slots=True)
class FileSystem:
    """What the kernel says of a directory's file system."""

    size: int
    #: Major and minor number of the device that it stands on.
    device: tuple[int, int]


#: Asks for a directory's file system; OSError where there is none. Recorded hosts answer otherwise.
Measure = Callable[[Path], FileSystem]


def measure(directory: Path) -> FileSystem:
    """Ask the running kernel."""
    told = os.statvfs(directory)
    device = directory.stat().st_dev
    return FileSystem(told.f_frsize * told.f_blocks, (os.major(device), os.minor(device)))


def read_disk(files: HostFiles, directory: Path, measure: Measure) -> Disk:
    """The file system of a directory of the host.

    Raises:
        BadConfiguration: there is no such directory.
    """
    try:
        told = measure(files.path(str(directory).lstrip("/")))
    except OSError as error:
        raise BadConfiguration(
            [f"disk names {directory}, which cannot be read: {error.strerror}"]
        ) from error
    return Disk(told.size // _GIB, _trait(files, told.device))


_BY_ROTATION: Final = {"0": "STORAGE_DISK_SSD", "1": "STORAGE_DISK_HDD"}

#: The traits of what a disk stands on.
DISK_TRAITS: Final = frozenset(_BY_ROTATION.values())


def _trait(files: HostFiles, device: tuple[int, int]) -> str | None:
    """A partition does not say whether it turns, the disk above it does."""
    path = files.path(f"sys/dev/block/{device[0]}:{device[1]}").resolve()
    for place in (path, path.parent):
        try:
            turns = (place / "queue/rotational").read_text(errors="replace").strip()
        except OSError:
            continue
        return _BY_ROTATION.get(turns)
    return None
