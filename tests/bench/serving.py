# SPDX-License-Identifier: Apache-2.0
"""Servers for the benchmark's own tests: in this process, each in a thread."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from wsgiref.simple_server import WSGIRequestHandler, make_server

from bench.server import RunningServer
from berth.config import load
from berth.deploy import load_application
from tests.e2e.serving import PATIENCE, configured


class _Quiet(WSGIRequestHandler):
    timeout = PATIENCE  # one that connects and is silent would hold all others up

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def berth_on(database: Path) -> Iterator[RunningServer]:
    """The whole application on a database file, closing each connection after one answer."""
    with berth_at(f"sqlite:///{database}", database.parent) as server:
        yield server


@contextmanager
def berth_at(url: str, directory: Path) -> Iterator[RunningServer]:
    """The same on a database of any engine; its configuration is in `directory`."""
    application = load_application(load([str(configured(directory, url))]))
    with make_server("127.0.0.1", 0, application, handler_class=_Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield _running(server.server_port, directory, keeps_connections=False)
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def answering(*answers: Sequence[bytes]) -> Iterator[RunningServer]:
    """A server that answers the n-th request, on whichever connection, with the n-th parts.

    No parts at all: it closes the connection without a word. After the last answer it is silent.
    """
    pending = iter(answers)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=_answer_all, args=(listener, pending), daemon=True)
        thread.start()
        try:
            yield _running(listener.getsockname()[1], Path(), keeps_connections=True)
        finally:
            # Closing alone would not wake the thread, which would go on to accept.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _answer_all(listener: socket.socket, pending: Iterator[Sequence[bytes]]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_answer, args=(connection, pending), daemon=True).start()


def _answer(connection: socket.socket, pending: Iterator[Sequence[bytes]]) -> None:
    with connection:
        while connection.recv(65536):
            parts = next(pending, None)
            if parts is None:
                continue
            if not parts:
                return
            for part in parts:
                connection.sendall(part)
            if parts[-1].endswith(b"<end of stream>"):
                return


def _running(port: int, directory: Path, *, keeps_connections: bool) -> RunningServer:
    return RunningServer("test", port, os.getpid(), directory, keeps_connections)
