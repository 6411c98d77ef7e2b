# SPDX-License-Identifier: Apache-2.0
"""Runs `berth` commands in this process, for tests that do not need a separate one."""

from __future__ import annotations

import io
import logging
import subprocess
from collections.abc import Callable, Sequence
from typing import TextIO

import pytest

from berth.cli.main import main


class InProcess:
    """Runs `berth` commands with some standard input."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        program: Callable[[Sequence[str]], object] = main,
    ) -> None:
        self._program = program
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(
        self, *arguments: str, stdin: TextIO | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, as `run_berth` does."""
        self._monkeypatch.setattr("sys.stdin", stdin or io.StringIO())
        self._capsys.readouterr()
        code = 0
        root = logging.getLogger()
        handlers, level = root.handlers.copy(), root.level
        try:
            self._program(arguments)
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            # A command logs to a stream that is closed with this test.
            root.handlers, root.level = handlers, level
        said = self._capsys.readouterr()
        return subprocess.CompletedProcess(arguments, code, said.out, said.err)
