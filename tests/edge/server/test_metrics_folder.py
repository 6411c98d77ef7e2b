# SPDX-License-Identifier: Apache-2.0
"""The folder of the metrics exists while a service runs, and is removed at its end."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from berth.config import METRICS_FOLDER, ConfigurationError
from berth.edge.server.metrics_folder import metrics_folder


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names no folder."""
    monkeypatch.delenv(METRICS_FOLDER, raising=False)


def old(folder: Path) -> Path:
    """An hour-old folder with a file in it."""
    folder.mkdir()
    (folder / "counter_1.db").write_bytes(b"")
    hour_ago = folder.stat().st_mtime - 3600
    os.utime(folder, (hour_ago, hour_ago))
    return folder


def test_it_is_named_while_a_service_runs(tmp_path: Path) -> None:
    """It is readable by its owner only, and is removed with the files of the workers."""
    with metrics_folder(tmp_path) as folder:
        assert os.environ[METRICS_FOLDER] == str(folder)
        assert folder.parent == tmp_path
        assert folder.stat().st_mode & 0o777 == 0o700
        (folder / "counter_1.db").write_bytes(b"")
    assert METRICS_FOLDER not in os.environ
    assert not list(tmp_path.iterdir())


def test_an_operator_may_say_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is used, and the variable is restored afterwards; an unusable folder is an error."""
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path))
    with metrics_folder() as folder:
        assert folder.parent == tmp_path
    assert os.environ[METRICS_FOLDER] == str(tmp_path)
    monkeypatch.setenv(METRICS_FOLDER, str(tmp_path / "none"))
    with pytest.raises(ConfigurationError, match="cannot create a directory for metrics in"):
        metrics_folder().__enter__()


def test_what_a_killed_service_left_goes_with_the_next(tmp_path: Path) -> None:
    """Folders of running services, new ones, and those of other users stay."""
    left = old(tmp_path / "berth-metrics-left")
    locked = old(tmp_path / "berth-metrics-held")
    new = tmp_path / "berth-metrics-new"
    new.mkdir()
    others = old(tmp_path / "other")
    lock = os.open(locked, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with metrics_folder(tmp_path):
            assert not left.exists()
            assert all(folder.exists() for folder in (locked, new, others))
    finally:
        os.close(lock)
