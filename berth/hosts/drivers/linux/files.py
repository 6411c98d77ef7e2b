# SPDX-License-Identifier: Apache-2.0
"""Reads a kernel's files in sysfs and procfs, below a configurable root.

The root is `/` for the host that this process runs on, another directory if the host's files are
mounted into a container, and a recorded tree in tests. A missing file yields None or nothing, since
kernels differ in what they offer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from berth.hosts.drivers.host_model.names import read_id_list


class HostFiles:
    """The files of one host; paths have no leading slash."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def path(self, path: str) -> Path:
        """The path of one of the host's files for this process."""
        return self.root / path

    def text(self, path: str) -> str | None:
        """The content of a file, stripped; None if it cannot be read."""
        try:
            return self.path(path).read_text(errors="replace").strip()
        except OSError:
            # Some files exist and cannot be read, such as the speed of a link that is down.
            return None

    def number(self, path: str) -> int | None:
        """The number in a file, decimal or with a 0x prefix."""
        text = self.text(path)
        try:
            return None if text is None else int(text, 0)
        except ValueError:
            return None

    def id_list(self, path: str) -> frozenset[int] | None:
        """The IDs in a file."""
        text = self.text(path)
        try:
            return None if text is None else read_id_list(text)
        except ValueError:
            return None

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty if there is none."""
        try:
            return sorted(entry.name for entry in self.path(path).iterdir())
        except OSError:
            return []

    def numbered(self, path: str, prefix: str) -> Iterator[tuple[int, str]]:
        """The names in a directory that consist of `prefix` and a number, by number."""
        matches = (re.fullmatch(rf"{prefix}(\d+)", name) for name in self.names(path))
        yield from sorted((int(match[1]), f"{path}/{match[0]}") for match in matches if match)

    def link(self, path: str) -> str | None:
        """The last part of a link's target."""
        try:
            return self.path(path).readlink().name
        except OSError:
            return None
