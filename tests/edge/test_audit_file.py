# SPDX-License-Identifier: Apache-2.0
"""The file of the audit log: whole lines from several processes, rotation, and a full disk."""

from __future__ import annotations

import errno
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from berth.api.audit import Trail
from berth.config import ConfigurationError
from berth.edge import audit_log
from berth.edge.audit_log import AGAIN_S, AuditFile, AuditLog, Observer
from berth.index import Index
from tests.api import configured

#: Writes a thousand long lines of one letter, while others do the same.
WRITER = """
import sys
from pathlib import Path
from berth.edge.audit_log import AuditFile
file = AuditFile(Path(sys.argv[1]))
for _ in range(1000):
    file.append(sys.argv[2].encode() * 9000 + b"\\n")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a file is to be."""
    return tmp_path / "audit.jsonl"


def test_a_new_file_is_private_whatever_the_umask(path: Path) -> None:
    """And an existing one keeps its mode."""
    before = os.umask(0)
    try:
        AuditFile(path).append(b"1\n")
        assert path.stat().st_mode & 0o777 == 0o600
        path.chmod(0o640)
        AuditFile(path).append(b"2\n")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    assert path.read_bytes() == b"1\n2\n"


def test_lines_of_several_processes_do_not_mix(path: Path) -> None:
    """Not even long ones."""
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, path, letter]) for letter in ("a", "b")
    ]
    assert [writer.wait() for writer in writers] == [0, 0]
    lines = path.read_bytes().splitlines()
    assert len(lines) == 2000
    assert set(lines) == {b"a" * 9000, b"b" * 9000}


def test_it_survives_rotation(path: Path) -> None:
    """Renamed with and without a new file, removed, and truncated."""
    file, other = AuditFile(path), AuditFile(path)
    file.append(b"1\n")
    old = path.rename(path.with_suffix(".1"))
    file.append(b"2\n")
    other.append(b"3\n")
    assert (old.read_bytes(), path.read_bytes()) == (b"1\n", b"2\n3\n")
    old = path.rename(path.with_suffix(".2"))
    path.touch(0o640)
    other.append(b"4\n")
    assert (old.read_bytes(), path.read_bytes()) == (b"2\n3\n", b"4\n")
    path.unlink()
    file.append(b"5\n")
    assert path.read_bytes() == b"5\n"
    os.truncate(path, 0)
    file.append(b"6\n")
    assert path.read_bytes() == b"6\n"


def test_rotation_leaves_no_descriptor_open(path: Path) -> None:
    """Whatever the number of rotations."""
    file = AuditFile(path)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        path.unlink()
        file.append(b"1\n")
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_line_that_was_cut_short_does_not_spoil_the_next(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may become full in the middle of a line."""
    file = AuditFile(path)
    with monkeypatch.context() as patched:
        write = os.write
        patched.setattr(os, "write", lambda number, text: write(number, text[:3]))
        with pytest.raises(OSError, match="a part of the line"):
            file.append(b"first\n")
    file.append(b"second\n")
    file.append(b"third\n")
    assert path.read_bytes() == b"fir\nsecond\nthird\n"


class Counts(Observer):
    """Counts the events of an audit log."""

    def __init__(self) -> None:
        self.written = self.lost = 0

    def line_written(self) -> None:
        """See `Observer`."""
        self.written += 1

    def line_lost(self) -> None:
        """See `Observer`."""
        self.lost += 1


def test_lost_lines_are_counted_and_logged_now_and_then(
    path: Path, index: Index, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One message for thousands of requests."""
    now, counts = [100.0], Counts()
    log = AuditLog(path, index, clock=lambda: now[0])
    log.observer = counts
    monkeypatch.setattr(audit_log, "line_of", lambda *_: b"{}\n")

    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    trail = Trail("create_trait", {})
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(os, "write", full)
        for _ in range(3):
            log.write(trail, {}, 201)
        now[0] += AGAIN_S
        log.write(trail, {}, 201)
    log.write(trail, {}, 201)
    assert (counts.written, counts.lost) == (1, 4)
    assert [record.getMessage() for record in caplog.records] == [
        f"Cannot write the audit log {path}: No space left on device; "
        f"lines lost since the last such message: {lost}"
        for lost in (1, 3)
    ]


def test_a_full_disk_fails_no_request(tmp_path: Path) -> None:
    """/dev/full is a disk without room. The metrics tell."""
    client = configured.serve(tmp_path, "[berth]\naudit_log = /dev/full\n")
    assert client.put("/traits/CUSTOM_ROOM").status == 201
    assert "berth_audit_log_lost_total 1.0" in client.get("/metrics").text


@pytest.mark.parametrize("wrong", ["absent/audit.jsonl", "."])
def test_a_service_without_its_audit_log_does_not_start(tmp_path: Path, wrong: str) -> None:
    """The message names the option and the file."""
    with pytest.raises(ConfigurationError, match=r"\[berth\]audit_log: cannot write /"):
        configured.serve(tmp_path, f"[berth]\naudit_log = {wrong}\n")
