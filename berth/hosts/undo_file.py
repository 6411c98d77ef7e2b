# SPDX-License-Identifier: Apache-2.0
"""Files of changes that can be undone: a line of JSON for each, on disk before the change is made.

So it is known of each, after whatever fall, whether it was made: by looking.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO

from berth.hosts.errors import BadConfiguration
from berth.hosts.whole_files import hand_over, keep_names


class UndoFile:
    """Changes that were made, or were about to be.

    Args:
        path: of a file that does not exist yet, or to be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Make the file, for this user only; it is there after whatever fall.

        Raises:
            BadConfiguration: it exists, or cannot be made.
        """
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            hand_over(self.path)
            keep_names(self.path.parent)
        except OSError as error:
            raise BadConfiguration(
                [f"{self.path} cannot be made: {(error.strerror or str(error)).lower()}"]
            ) from error

    def append(self, change: Mapping[str, Any]) -> None:
        """Write a change down; it is on disk when this returns.

        Raises:
            BadConfiguration: the file cannot be written.
        """
        try:
            with self.path.open("r+b") as file:
                _go_to_end(file)
                file.write(json.dumps(change).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise BadConfiguration([f"{self.path} cannot be written: {error.strerror}"]) from error

    def read(self, is_change: Callable[[Mapping[str, Any]], bool], *, made_by: str) -> list[Any]:
        """The changes, in the order in which they were made.

        One that was not written whole at the end was not made, and is left out.

        Args:
            is_change: whether a line can be one.
            made_by: what makes such files, for people.

        Raises:
            BadConfiguration: it cannot be read, or is no such file.
        """
        try:
            whole, newline, rest = self.path.read_text().rpartition("\n")
            changes = [json.loads(line) for line in whole.splitlines()]
            with suppress(ValueError) if newline else nullcontext():
                changes += [json.loads(line) for line in rest.splitlines()]
        except (OSError, ValueError) as error:
            raise BadConfiguration([f"{self.path} cannot be read: {error}"]) from error
        if not all(isinstance(one, dict) and is_change(one) for one in changes):
            raise BadConfiguration([f"{self.path} is not a file of changes that {made_by} made"])
        return changes


def _go_to_end(file: BinaryIO) -> None:
    """Go to the end of the last whole line: a fall or a full disk may have left a part of one."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 1, 0))
    if end and file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)
