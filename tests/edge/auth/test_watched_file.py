# SPDX-License-Identifier: Apache-2.0
"""A file of credentials that changes while the service runs; who is let in: test_http_basic.py."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from berth.edge.auth.watched_file import (
    LOOK_EVERY_S,
    CredentialsUnusable,
    MalformedLine,
    WatchedFile,
    read_credentials,
)
from tests.edge.auth.gate import Clock, replace


def parse(text: str) -> str:
    """Accept any content but `broken`."""
    if text == "broken":
        raise MalformedLine(1, "this is broken")
    return text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file."""
    file = tmp_path / "file"
    file.write_text("first")
    file.chmod(0o600)
    return file


def test_a_file_that_is_as_it_was_is_not_read_again(path: Path) -> None:
    """Only its status is read."""
    read: list[str] = []
    clock = Clock()
    file = WatchedFile(path, lambda text: read.append(text), clock=clock)
    for _ in range(5):
        clock.now += LOOK_EVERY_S
        file.content()
    assert read == ["first"]


def test_a_disk_that_recovers_lets_everybody_in_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has the same status as when it could not be read; it is read again anyway."""
    clock = Clock()
    file = WatchedFile(path, parse, clock=clock)
    replace(path, "second")

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", fail)
        for _ in range(2):
            clock.now += LOOK_EVERY_S
            with pytest.raises(CredentialsUnusable, match=r"cannot read .*: input/output error"):
                file.content()
    clock.now += LOOK_EVERY_S
    assert file.content() == "second"


def test_at_the_start_it_has_to_be_whole(path: Path) -> None:
    """The error names the file and the line."""
    path.write_text("broken")
    with pytest.raises(CredentialsUnusable) as caught:
        WatchedFile(path, parse)
    assert str(caught.value) == f"{path}, line 1: this is broken"
    path.write_bytes(b"one\ntwo \xff")
    with pytest.raises(CredentialsUnusable, match="line 2: this is not UTF-8"):
        read_credentials(path, parse)


@pytest.mark.parametrize(("mode", "warned"), [(0o600, 0), (0o640, 0), (0o644, 1), (0o602, 1)])
def test_a_file_that_is_open_to_everybody_is_warned_of(
    path: Path, caplog: pytest.LogCaptureFixture, mode: int, warned: int
) -> None:
    """The warning contains the command that fixes the permissions."""
    path.chmod(mode)
    WatchedFile(path, parse)
    assert (
        caplog.messages
        == [f"Every user of this machine can access {path}: run chmod o= {path}"] * warned
    )
