# SPDX-License-Identifier: Apache-2.0
"""Changing a file of credentials: one command at a time, and whole or not at all."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from berth.api.auth.watched_file import CredentialsUnusable, read_credentials
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed

#: Of a file that is made new: its owner's alone.
_MODE = 0o600


Content = TypeVar("Content")


def change(
    path: Path,
    parse: Callable[[str], Content],
    edit: Callable[[str, Content], str],
    *,
    may_create: bool,
) -> None:
    """Replace the text of a file by what `edit` makes of it.

    Commands that change files of one folder wait for each other. A reader sees the old file or the
    new one, and after a power cut one of them is there. The file keeps its mode and its owner.

    Args:
        parse: what the file has to be; raises MalformedLine.
        edit: from the text as it is (empty for a file that does not exist) and what was parsed of
            it to the new text; what it raises leaves everything as it was.
        may_create: whether a file that does not exist is made.

    Raises:
        CredentialsUnusable: the file cannot be read or understood, or does not exist and may not
            be made.
        CommandFailed: it cannot be written (CONFIGURATION).
    """
    # What a link leads to is changed, not the link.
    path = path.resolve()
    with _writing(path), _locked(path.parent):
        if path.exists() or not may_create:
            before = read_credentials(path, lambda text: (text, parse(text)))
        else:
            before = ("", parse(""))
        _replace(path, edit(*before))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say of what the system refuses which file it was."""
    try:
        yield
    except FileNotFoundError as error:
        raise CredentialsUnusable(
            f"{path} cannot be written: there is no folder {path.parent}; create it, or name "
            f"another file with --file"
        ) from error
    except OSError as error:
        raise CommandFailed(
            f"{path} cannot be written: {(error.strerror or str(error)).lower()}",
            ExitCode.CONFIGURATION,
        ) from error


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder, so that no lock file is left lying in it."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _replace(path: Path, text: str) -> None:
    number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(number, "w", encoding="utf-8") as file:
            _take_after(file.fileno(), path)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _take_after(number: int, path: Path) -> None:
    """Give a new file the mode and the owner of the one that it replaces."""
    try:
        found = path.stat()
    except FileNotFoundError:
        os.fchmod(number, _MODE)
        return
    made = os.fstat(number)
    if (made.st_uid, made.st_gid) != (found.st_uid, found.st_gid):
        os.fchown(number, found.st_uid, found.st_gid)
    os.fchmod(number, found.st_mode & 0o777)
