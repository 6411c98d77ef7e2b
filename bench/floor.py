# SPDX-License-Identifier: Apache-2.0
"""The floor: an application that does nothing, behind the server that berth uses.

It runs Granian with berth's settings, threads and pinned workers included, and its responses have
the status and headers of berth's and a body of as many zero bytes as a header of the request says.
No application behind this server, with this client, can be faster: what berth takes beyond the
floor is berth's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final
from wsgiref.types import StartResponse, WSGIEnvironment

from bench.results import FLOOR
from bench.server import RunningServer, free_port, run_server
from berth.config import load, read_settings
from berth.edge.server.metrics_folder import metrics_folder
from berth.edge.server.workers import run

#: As long as those of one of berth's responses.
_HEADERS: Final = (
    ("openstack-api-version", "placement 1.39"),
    ("vary", "openstack-api-version"),
    ("cache-control", "no-cache"),
    ("last-modified", "Mon, 23 Nov 2026 14:45:44 GMT"),
    ("content-type", "application/json"),
    ("x-openstack-request-id", "req-ee11d734-77d6-4a3a-a398-bd77e785687d"),
)


@contextmanager
def serve_floor(directory: Path, *, workers: int) -> Iterator[RunningServer]:
    """Serve the application for the length of the block."""
    port = free_port()
    configuration = directory / f"placement-{port}.conf"
    # The database is never opened.
    configuration.write_text("[placement_database]\nconnection = sqlite://\n")
    root = str(Path(__file__).resolve().parent.parent)
    command = (sys.executable, "-m", "bench.floor", str(configuration), str(port), str(workers))
    with run_server(
        FLOOR,
        command,
        port=port,
        environment={**os.environ, "PYTHONPATH": root},
        directory=directory,
    ) as server:
        yield server


class Floor:
    """The application."""

    def __init__(self) -> None:
        #: By size.
        self._bodies: dict[int, bytes] = {}

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer with as many bytes as the request says."""
        size = int(environ.get("HTTP_X_ANSWER_BYTES", "0"))
        body = self._bodies.get(size)
        if body is None:
            body = self._bodies[size] = bytes(size)
        start_response("200 OK", [*_HEADERS, ("content-length", str(size))])
        return (body,)


def main(configuration: str, port: str, workers: str) -> None:
    """Serve until a signal stops it."""
    settings = read_settings(load([configuration]))
    with metrics_folder():
        run(
            partial(_loaded, settings.receiving.client_seconds_max),
            settings,
            host="127.0.0.1",
            port=int(port),
            workers=int(workers),
            tls=None,
            announce=lambda: None,
            stopping=lambda: None,
        )


def _loaded(client_seconds_max: float, _stopping: Event) -> tuple[Floor, float]:
    return Floor(), client_seconds_max


if __name__ == "__main__":
    main(*sys.argv[1:])
