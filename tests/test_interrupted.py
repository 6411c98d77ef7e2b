# SPDX-License-Identifier: Apache-2.0
"""A run of the tests that is interrupted leaves no process and no directory behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.serving import wait_until
from tests.servers.family import is_alive

_ROOT = Path(__file__).parent.parent

#: A test that starts a program, tells its process id and its own directory, and waits.
_TEST = """
import subprocess, time
def test_that_waits(tmp_path):
    program = subprocess.Popen(["sleep", "600"], start_new_session=True)
    with open({report!r}, "w") as report:
        print(program.pid, tmp_path, file=report)
    time.sleep(600)
"""

#: These tests may themselves run in the background, where SIGINT is ignored.
_RUN = """
import signal, sys, pytest
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.exit(pytest.main())
"""


@pytest.mark.parametrize(
    ("number", "processes"),
    [
        (signal.SIGINT, 0),
        (signal.SIGKILL, 1),
        # pytest-xdist gives the test that runs ten seconds to end.
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.thorough),
    ],
    ids=str,
)
def test_an_interrupted_run_leaves_nothing(
    tmp_path: Path, number: signal.Signals, processes: int
) -> None:
    """Not even if the run is killed while a program of a test runs in a session of its own."""
    report = tmp_path / "report"
    (tmp_path / "test_it.py").write_text(_TEST.format(report=str(report)))
    (tmp_path / "temporary").mkdir()
    options = ["-p", "tests.interrupted", "-p", "no:cacheprovider", "-n", str(processes)]
    run = subprocess.Popen(
        [sys.executable, "-c", _RUN, *options, "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=_ROOT,
        env={**os.environ, "PYTEST_DEBUG_TEMPROOT": str(tmp_path / "temporary")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: report.exists() and report.read_text().endswith("\n"), "the test to begin")
    program, _, directory = report.read_text().strip().partition(" ")
    assert is_alive(int(program))
    assert Path(directory).exists()
    run.send_signal(number)
    run.wait(60)
    wait_until(lambda: not is_alive(int(program)), "the program to be ended")
    wait_until(lambda: not Path(directory).exists(), "the directory to be removed")
