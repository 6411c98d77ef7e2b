# SPDX-License-Identifier: Apache-2.0
"""Change a file of credentials atomically, one command at a time."""

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from berth.cli.failure import CommandFailed
from berth.edge.auth.watched_file import CredentialsUnusable, read_credentials
from berth.hosts.files import keep_names

#: The mode of a new file: only its owner may read it.
_MODE = 0o600


Content = TypeVar("Content")


def change(
    path: Path,
    parse: Callable[[str], Content],
    edit: Callable[[str, Content], str],
    *,
    may_create: bool,
) -> None:
    """Replace the text of a file with the result of `edit`.

    Commands that change files in the same directory wait for each other. A reader sees the old file
    or the new one, also after a power failure. The file keeps its mode and owner.

    Args:
        parse: parses the file; raises MalformedLine.
        edit: returns the new text, given the old text (empty for a new file) and what `parse` made
            of it; if it raises, the file stays unchanged.
        may_create: create a file that does not exist.

    Raises:
        CredentialsUnusable: the file cannot be read or parsed, or does not exist and must not be
            created.
        CommandFailed: the file cannot be written (CONFIGURATION).
    """
    # Change the target of a symbolic link, not the link.
    path = path.resolve()
    with _writing(path), _locked(path.parent):
        if path.exists() or not may_create:
            before = read_credentials(path, lambda text: (text, parse(text)))
        else:
            before = ("", parse(""))
        _replace(path, edit(*before))


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Name the file in errors of the operating system."""
    try:
        yield
    except FileNotFoundError as error:
        raise CredentialsUnusable(
            f"cannot write {path}: there is no directory {path.parent}; create it, or choose "
            f"another file with --file"
        ) from error
    except OSError as error:
        raise CommandFailed(
            f"cannot write {path}: {(error.strerror or str(error)).lower()}"
        ) from error


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Lock the directory itself, so that no lock file stays behind."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            _copy_mode_and_owner(path, file.fileno())
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(name)
        raise
    keep_names(path.parent)


def _copy_mode_and_owner(path: Path, descriptor: int) -> None:
    """Give a new file the mode and owner of the file that it replaces."""
    try:
        old = path.stat()
    except FileNotFoundError:
        os.fchmod(descriptor, _MODE)
        return
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        os.fchown(descriptor, old.st_uid, old.st_gid)
    os.fchmod(descriptor, old.st_mode & 0o777)
