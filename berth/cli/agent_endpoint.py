# SPDX-License-Identifier: Apache-2.0
"""The agent's endpoint: `/metrics` and `/healthz`, over plain HTTP."""

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import AF_INET6, gaierror
from typing import Final

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.hosts.agent_report import AgentReport

LOG = logging.getLogger(__name__)

#: Seconds that a client may take to send its request.
_REQUEST_S_MAX: Final = 10.0


@contextmanager
def metrics_served_at(host: str, port: int, report: AgentReport) -> Iterator[str]:
    """Serve both paths meanwhile, in separate threads; returns the URL.

    Raises:
        CommandFailed: the address is in use, or is not this machine's (ADDRESS).
    """

    class Handler(_Handler):
        agent_report = report

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        if ":" in host:
            address_family = AF_INET6

    try:
        server = Server((host, port), Handler)
    except (OSError, gaierror, OverflowError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandFailed(
            f"cannot serve metrics at {host}:{port}: {reason}; set another metrics.bind",
            ExitCode.ADDRESS,
        ) from error
    url_host = f"[{host}]" if ":" in host else host
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield f"http://{url_host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Answers the two paths."""

    agent_report: AgentReport
    timeout = _REQUEST_S_MAX

    def do_GET(self) -> None:
        """Answer with metrics, or health: 503 if some node was not reported recently."""
        path = self.path.partition("?")[0]
        if path == "/metrics":
            content_type, body = self.agent_report.metrics(self.headers.get("Accept", ""))
            self._answer(HTTPStatus.OK, content_type, body)
        elif path == "/healthz":
            is_well, health = self.agent_report.health()
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            self._answer(status, "application/json", json.dumps(health, indent=1).encode() + b"\n")
        else:
            self._answer(
                HTTPStatus.NOT_FOUND, "text/plain", b"The paths are /metrics and /healthz\n"
            )

    do_HEAD = do_GET

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def version_string(self) -> str:
        """Do not name Python."""
        return "berth"

    def log_message(self, format: str, *args: object) -> None:
        """Log requests at DEBUG only."""
        LOG.debug(format, *args)
