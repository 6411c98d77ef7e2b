# SPDX-License-Identifier: Apache-2.0
"""Reads what a kernel tells of its host in sysfs and procfs, below a root that can be chosen.

The root is `/` for the host that this process runs on, somewhere else where the host's files are
mounted into a container, and a recorded tree in tests. What is not there is told by None or by
nothing: kernels differ in what they offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from berth.hosts.drivers.hosts.id_lists import read_id_list


class HostFiles:
    """The files of one host; paths are written without the leading slash."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, path: str) -> Path:
        """Where a file of the host stands for this process."""
        return self.root / path

    def text(self, path: str) -> str | None:
        """What a file says, without the blanks around it."""
        try:
            return self.path(path).read_text(errors="replace").strip()
        except OSError:
            # Some files are there and cannot be read: the speed of a link that is down.
            return None

    def number(self, path: str) -> int | None:
        """The number that a file says, decimal or with 0x before it."""
        text = self.text(path)
        try:
            return None if text is None else int(text, 0)
        except ValueError:
            return None

    def id_list(self, path: str) -> frozenset[int] | None:
        """The ids that a file lists."""
        text = self.text(path)
        try:
            return None if text is None else read_id_list(text)
        except ValueError:
            return None

    def names(self, path: str) -> list[str]:
        """What a directory holds, sorted; nothing where there is none."""
        try:
            return sorted(entry.name for entry in self.path(path).iterdir())
        except OSError:
            return []

    def numbered(self, path: str, prefix: str) -> Iterator[tuple[int, str]]:
        """What a directory holds that is called `prefix` and a number, by that number."""
        found = (re.fullmatch(rf"{prefix}(\d+)", name) for name in self.names(path))
        yield from sorted((int(match[1]), f"{path}/{match[0]}") for match in found if match)

    def link(self, path: str) -> str | None:
        """The last part of what a link leads to."""
        try:
            return self.path(path).readlink().name
        except OSError:
            return None
