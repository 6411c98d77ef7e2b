# SPDX-License-Identifier: Apache-2.0
"""What berth is held against: an application that does nothing, and the processor time of both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from bench.floor import serve_floor
from bench.http1 import Requests
from bench.processor import processor_s
from bench.sample import Round, ask
from bench.server import RunningServer
from tests.e2e.serving import wait_until

#: A child that computes for ever, below a parent that only waits.
BUSY = f"{sys.executable} -c 'while True: pass' & wait"


def test_the_floor_answers_with_as_many_bytes_as_a_request_says(tmp_path: Path) -> None:
    """As many as berth's answer has, to any path, and with the time of the server's processes."""
    with serve_floor(tmp_path, workers=1) as server:
        request = Requests(server.port, answer_bytes=70_000).get("/resource_providers")
        sample = ask(server, [request], Round(0.2, 0, 10.0))
        assert sample.answer_bytes == 70_000
        assert not sample.failures
        assert sample.processor is not None
        assert 0 <= sample.processor <= processor_s(server)


def test_the_processor_time_of_a_server_is_that_of_all_its_processes() -> None:
    """Workers are children of the process that was started, which does little itself."""
    with subprocess.Popen(["/bin/sh", "-c", BUSY], start_new_session=True) as parent:
        try:
            server = RunningServer("busy", 0, parent.pid, Path(), keeps_connections=True)
            wait_until(lambda: processor_s(server) > 0.1, "the child's time was counted")
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
