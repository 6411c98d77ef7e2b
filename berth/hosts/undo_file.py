# SPDX-License-Identifier: Apache-2.0
"""Undo files: a line of JSON for each change, on disk before the change is made.

So after any crash, a check of the service shows for each change whether it was made.
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
    """Changes that were made, or were about to be made.

    Args:
        path: a file to create, or to read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def create(self) -> None:
        """Create the file, for this user only, and make sure that it survives a crash.

        Raises:
            BadConfiguration: the file exists, or cannot be created.
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
        """Record a change; it is on disk when this returns.

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

        An incomplete last line is left out: its change was not made.

        Args:
            is_change: whether a line is a change.
            made_by: the program that writes such files, for messages.

        Raises:
            BadConfiguration: the file cannot be read, or is not an undo file.
        """
        try:
            whole, newline, rest = self.path.read_text().rpartition("\n")
            changes = [json.loads(line) for line in whole.splitlines()]
            with suppress(ValueError) if newline else nullcontext():
                changes += [json.loads(line) for line in rest.splitlines()]
        except (OSError, ValueError) as error:
            raise BadConfiguration([f"{self.path} cannot be read: {error}"]) from error
        if not all(isinstance(change, dict) and is_change(change) for change in changes):
            raise BadConfiguration([f"{self.path} is not an undo file of {made_by}"])
        return changes


def _go_to_end(file: BinaryIO) -> None:
    """Seek to the end of the last complete line: a crash or a full disk may have left a partial
    one.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(max(end - 1, 0))
    if end and file.read(1) != b"\n":
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)
    file.seek(0, os.SEEK_END)
