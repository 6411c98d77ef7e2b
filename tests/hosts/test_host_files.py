# SPDX-License-Identifier: Apache-2.0
"""Files on a host: their content after a crash or on a full disk."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from berth.hosts.errors import BadConfiguration
from berth.hosts.state_lock import StateLock
from berth.hosts.undo import new_undo_path
from berth.hosts.undo_file import UndoFile
from berth.hosts.whole_files import replace_file

#: A user that is not root.
NOBODY: Final = 65534


def read(undo: UndoFile) -> list[object]:
    """The numbers of the changes in a file."""
    return [change["n"] for change in undo.read(lambda change: "n" in change, made_by="a test")]


def test_a_change_that_was_not_written_whole_was_not_made(tmp_path: Path) -> None:
    """The process was killed while writing the last change; the earlier ones can still be
    undone."""
    undo = UndoFile(tmp_path / "undo.jsonl")
    undo.create()
    undo.append({"n": 1})
    with undo.path.open("a") as file:
        file.write('{"n": 2, "provid')
    assert read(undo) == [1]
    undo.append({"n": 3})
    assert read(undo) == [1, 3]


def test_a_file_that_is_broken_in_its_middle_is_refused(tmp_path: Path) -> None:
    """Its meaning would be a guess."""
    undo = UndoFile(tmp_path / "undo.jsonl")
    undo.path.write_text('{"n": 1}\n{"n"\n{"n": 3}\n')
    with pytest.raises(BadConfiguration, match="cannot be read"):
        read(undo)


def test_a_kept_file_outlasts_a_fall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Including its directory entry: a host that lost its uuid would come back as another host."""
    synced: list[str] = []

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))

    monkeypatch.setattr(os, "fsync", fsync)
    replace_file(tmp_path / "node-uuid", "x\n")
    assert synced == [f"{tmp_path}/node-uuid.new", str(tmp_path)]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_root_makes_in_an_agents_folder_is_the_agents(tmp_path: Path) -> None:
    """If root migrates a host, the agent can still start afterwards."""
    os.chown(tmp_path, NOBODY, NOBODY)
    undo = UndoFile(new_undo_path(tmp_path))
    undo.create()
    replace_file(tmp_path / "node-uuid", "x\n")
    with closing(StateLock()) as lock:
        lock.hold(tmp_path)
    made = [undo.path, undo.path.parent, tmp_path / "node-uuid", tmp_path / "lock"]
    assert {path.stat().st_uid for path in made} == {NOBODY}


def test_no_link_in_an_agents_folder_leads_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Root does not write through links that the agent's user has made."""
    other = tmp_path / "other"
    other.write_text("of somebody else")
    for name in ("lock", "node-uuid.new"):
        (tmp_path / name).symlink_to(other)
    with closing(StateLock()) as lock:
        lock.hold(tmp_path)
    with pytest.raises(OSError, match="symbolic links"):
        replace_file(tmp_path / "node-uuid", "x\n")
    assert other.read_text() == "of somebody else"
    assert "Cannot lock the state directory" in caplog.text
