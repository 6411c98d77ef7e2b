# SPDX-License-Identifier: Apache-2.0
"""The placement API inside a Python process, without a server or a socket.

    from berth import config, direct

    conf = config.load(["/etc/placement/placement.conf"])
    with direct.PlacementDirect(conf, latest_microversion=True) as placement:
        providers = placement.get("/resource_providers").json()["resource_providers"]

`PlacementDirect` returns a keystoneauth1 Adapter, so code written for the service, such as nova's
report client, works with it unchanged. Requests pass through the whole application: schemas,
microversions, policy and generations are those of the service. Only the transport differs: a
requests adapter calls the WSGI application. Nothing is patched, and the caller's configuration
keeps its values, so you can open several databases at once.

The caller has the roles `admin` and `service`, so an offline upgrade may do everything, including
reshapes (spec/operations.md section 6).
"""

import dataclasses
import io
import sys
import uuid
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Any, cast
from urllib.parse import unquote_to_bytes, urlsplit
from wsgiref.types import WSGIApplication, WSGIEnvironment

import requests
import requests.adapters
from keystoneauth1 import adapter, session, token_endpoint
from requests.structures import CaseInsensitiveDict

from berth.extras import needs_service

with needs_service():
    from oslo_config import cfg

    from berth import deploy
    from berth.api.paths import match_of
    from berth.config import read_settings
    from berth.config.options import register_opts

TOKEN = "admin"
ROLES = "admin,service"

#: The path that the API is mounted under, so that links look as they do behind a web server.
PREFIX = "/placement"


class ReadOnly(RuntimeError):
    """A request would change a database that was opened read-only."""


class PlacementDirect:
    """Opens the configured database and returns a keystoneauth1 Adapter for the API.

    Use it in a `with` statement. It opens the database and builds the application on entry, and
    closes both on exit. It initialises an empty SQLite database, as the service does.

    Args:
        conf: a parsed configuration. `PlacementDirect` registers berth's options on it if they
            are missing, and changes no value. `[api]auth_strategy` has no effect here.
        latest_microversion: use the newest microversion instead of 1.0 for calls that name none.
        read_only: leave the database unchanged. An empty database is not initialised, and every
            request that may change something raises `ReadOnly`.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        latest_microversion: bool = False,
        *,
        read_only: bool = False,
    ) -> None:
        self._conf = conf
        self._read_only = read_only
        self._microversion = "latest" if latest_microversion else None
        self._open = ExitStack()

    def __enter__(self) -> adapter.Adapter:
        """Open the database and build the application.

        Returns:
            An Adapter that returns responses with an error status instead of raising them, unless
            a call passes `raise_exc=True`.

        Raises:
            ConfigurationError: no database is configured, or an option is wrong.
            NotInThisRelease: this release does not support the engine.
            SchemaNotReady: the schema is not current; run `berth db upgrade`.
            DatabaseUnavailable: the database cannot be opened.
        """
        if "placement_database" not in self._conf:
            register_opts(self._conf)
        settings = dataclasses.replace(read_settings(self._conf), auth_strategy="noauth2")
        deploy.check_supported(settings)
        db = (deploy.open_read_only if self._read_only else deploy.open_prepared)(settings)
        self._open.callback(db.dispose)
        try:
            return self._adapter(deploy.build_application(settings, db))
        except BaseException:
            self._open.close()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the database."""
        self._open.close()

    def _adapter(self, application: WSGIApplication) -> adapter.Adapter:
        url = f"http://{uuid.uuid4()}{PREFIX}"
        transport = requests.Session()
        # Nothing of this session may ever reach the network: not a proxy, not another host.
        transport.trust_env = False
        transport.adapters.clear()
        wsgi = WSGITransport(application, PREFIX, read_only=self._read_only)
        transport.mount(url, wsgi)
        self._open.callback(transport.close)
        return adapter.Adapter(
            session.Session(auth=token_endpoint.Token(url, TOKEN), session=transport),
            service_type="placement",
            endpoint_override=url,
            default_microversion=self._microversion,
            additional_headers={"X-Roles": ROLES},
            raise_exc=False,
        )


class WSGITransport(requests.adapters.BaseAdapter):
    """A transport adapter of requests that calls a WSGI application instead of a socket."""

    def __init__(
        self, application: WSGIApplication, prefix: str = "", *, read_only: bool = False
    ) -> None:
        super().__init__()
        self._application = application
        self._read_only = read_only
        self._prefix = prefix
        self._closed = False

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: object = None,
        verify: object = True,
        cert: object = None,
        proxies: object = None,
    ) -> requests.Response:
        """Call the application and wait for its whole answer; a socket's options mean nothing."""
        if self._closed:
            raise RuntimeError("the PlacementDirect that this client belongs to is closed")
        environ = self._environ(request)
        if self._read_only and not match_of(environ).kind.is_read:
            raise ReadOnly(f"{request.method} {request.url}: this PlacementDirect is read-only")
        head: dict[str, Any] = {}
        body = io.BytesIO()

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: object = None, /
        ) -> Any:
            head.update(status=status, headers=headers)
            return body.write

        chunks = self._application(environ, start_response)
        try:
            for chunk in chunks:
                body.write(chunk)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        body.seek(0)
        return _response(request, head["status"], head["headers"], body)

    def close(self) -> None:
        """Refuse further calls: they would reopen the database, and nothing would close it."""
        self._closed = True

    def _environ(self, request: requests.PreparedRequest) -> WSGIEnvironment:
        """The request as PEP 3333 wants it."""
        parts = urlsplit(cast(str, request.url))
        path = unquote_to_bytes(parts.path).decode("latin-1").removeprefix(self._prefix)
        body = _body_of(request)
        environ: WSGIEnvironment = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": self._prefix,
            "PATH_INFO": path,
            "QUERY_STRING": parts.query,
            "SERVER_NAME": parts.hostname,
            "SERVER_PORT": str(parts.port or 80),
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_HOST": parts.netloc,
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": parts.scheme,
            "wsgi.input": io.BytesIO(body),
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
            "wsgi.input_terminated": True,
        }
        environ.update(_header_variables(request.headers))
        if body:
            environ["CONTENT_LENGTH"] = str(len(body))
        return environ


def _header_variables(headers: Mapping[str, str | bytes]) -> dict[str, str]:
    variables = {}
    for name, value in headers.items():
        key = name.upper().replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        variables[key] = value.decode("latin-1") if isinstance(value, bytes) else value
    return variables


def _body_of(request: requests.PreparedRequest) -> bytes:
    """The whole body, which requests holds as text, bytes, a file or other pieces."""
    body = cast("str | bytes | Iterable[str | bytes] | None", request.body)
    if body is None:
        return b""
    pieces = [body] if isinstance(body, str | bytes) else body
    return b"".join(piece.encode() if isinstance(piece, str) else piece for piece in pieces)


def _response(
    request: requests.PreparedRequest,
    status: str,
    headers: list[tuple[str, str]],
    body: io.BytesIO,
) -> requests.Response:
    code, _, reason = status.partition(" ")
    response = requests.Response()
    response.request = request
    response.url = cast(str, request.url)
    response.status_code = int(code)
    response.reason = reason
    response.headers = _folded(headers)
    response.encoding = requests.utils.get_encoding_from_headers(response.headers)
    response.raw = body
    return response


def _folded(headers: list[tuple[str, str]]) -> CaseInsensitiveDict[str]:
    """Response headers as requests has them: a repeated one is joined by commas."""
    folded: CaseInsensitiveDict[str] = CaseInsensitiveDict()
    for name, value in headers:
        folded[name] = f"{folded[name]}, {value}" if name in folded else value
    return folded
