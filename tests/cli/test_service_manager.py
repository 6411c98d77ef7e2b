# SPDX-License-Identifier: Apache-2.0
"""What a service manager is told: sd_notify(3)."""

from __future__ import annotations

import logging
import socket
import uuid
from pathlib import Path

import pytest

from berth.cli.service_manager import NOTIFY_SOCKET, tell_ready, tell_stopping


@pytest.mark.parametrize("kind", ["file", "abstract"])
def test_a_manager_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At a path, or at a name of the abstract namespace, which is written with an @."""
    name = str(tmp_path / "notify") if kind == "file" else f"@berth-{uuid.uuid4()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name.replace("@", "\0", 1))
        manager.settimeout(10)
        monkeypatch.setenv(NOTIFY_SOCKET, name)
        tell_ready("serves http://127.0.0.1:8778")
        assert manager.recv(4096) == b"READY=1\nSTATUS=serves http://127.0.0.1:8778"
        tell_stopping()
        assert manager.recv(4096).startswith(b"STOPPING=1\n")


@pytest.mark.parametrize("told", [None, ""])
def test_nobody_asked(
    told: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Then nothing is said."""
    monkeypatch.delenv(NOTIFY_SOCKET, raising=False)
    if told is not None:
        monkeypatch.setenv(NOTIFY_SOCKET, told)
    tell_ready("serves")
    assert not caplog.records


def test_a_manager_that_is_gone_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The service serves all the same, and the log says why the manager does not know."""
    monkeypatch.setenv(NOTIFY_SOCKET, str(tmp_path / "notify"))
    tell_ready("serves")
    (warned,) = caplog.records
    assert warned.levelno == logging.WARNING
    assert "NOTIFY_SOCKET: [Errno 2] No such file" in warned.getMessage()
