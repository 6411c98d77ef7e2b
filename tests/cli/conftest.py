# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the command tests."""

from __future__ import annotations

import pytest

from tests.cli.in_process import InProcess


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> InProcess:
    """Runs `berth` commands in this process."""
    return InProcess(monkeypatch, capsys)
