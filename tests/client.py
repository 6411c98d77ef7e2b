# SPDX-License-Identifier: Apache-2.0
"""A plain client for the REST API, for tests.

It speaks to a WSGI application in this process, or to a server over a socket, and sends exactly
what it is told: paths are percent-encoded by the caller, a header may be repeated, and nothing is
followed, retried or raised. Every exchange is shown to the functions in `Client.observers`.
"""

from __future__ import annotations

import http.client
import json as jsonlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication, WSGIEnvironment

HeaderPairs = Sequence[tuple[str, str]]

#: The headers of a client that noauth2 takes for an administrator that is also a service.
ADMIN: Mapping[str, str] = {"X-Auth-Token": "admin", "X-Roles": "admin,service"}

#: The newest microversion.
LATEST = "1.39"


class Unset:
    """The type of `NOTHING`, which tells "send no body" from "send the JSON value null"."""


NOTHING = Unset()


class Headers:
    """Response headers: looked up in any letter case, in the order they came."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = list(pairs)

    def __getitem__(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise KeyError(name)
        return value

    def __contains__(self, name: str) -> bool:
        return self.get(name) is not None

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.pairs)

    def __repr__(self) -> str:
        return f"Headers({self.pairs!r})"

    def get(self, name: str) -> str | None:
        """The value of a header, repeated ones joined by a comma, or None."""
        values = [value for key, value in self.pairs if key.lower() == name.lower()]
        return ", ".join(values) if values else None


@dataclass(frozen=True)
class Response:
    """What came back."""

    status: int
    headers: Headers
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8 text."""
        return self.body.decode()

    @property
    def json(self) -> Any:
        """The body parsed as JSON; None when there is no body."""
        return jsonlib.loads(self.body) if self.body else None

    @property
    def error(self) -> dict[str, Any]:
        """The one element of `errors` in the body of a failure."""
        (error,) = self.json["errors"]
        assert isinstance(error, dict)
        return error

    @property
    def code(self) -> str | None:
        """The error code of a failure, if it has one (microversion 1.23)."""
        return self.error.get("code")

    @property
    def detail(self) -> str:
        """The detail of a failure."""
        return str(self.error["detail"])


@dataclass(frozen=True)
class Exchange:
    """One request and its answer, as `Client.observers` see it."""

    method: str
    path: str
    version: str | None
    response: Response


class Transport(Protocol):
    """What carries a request to a server and brings the answer back."""

    def send(self, method: str, target: str, headers: HeaderPairs, body: bytes | None) -> Response:
        """Send one request; `target` is the path and query as they stand on the wire."""


class Client:
    """A client of one server, with the headers of an administrator unless told otherwise."""

    #: Called with every exchange of every client.
    observers: ClassVar[list[Callable[[Exchange], None]]] = []

    def __init__(self, transport: Transport, headers: Mapping[str, str] = ADMIN) -> None:
        self.transport = transport
        self.headers = dict(headers)

    @classmethod
    def of(cls, app: WSGIApplication, *, script_name: str = "") -> Client:
        """A client of a WSGI application in this process, mounted at `script_name`."""
        return cls(WSGITransport(app, script_name=script_name))

    @classmethod
    def at(cls, base_url: str) -> Client:
        """A client of the server at a base URL, such as `http://127.0.0.1:8778`."""
        return cls(SocketTransport(base_url))

    def acting_as(self, headers: Mapping[str, str]) -> Client:
        """The same server, with other default headers."""
        return Client(self.transport, headers)

    def get(self, path: str, **options: Any) -> Response:
        """`request` with GET."""
        return self.request("GET", path, **options)

    def put(self, path: str, **options: Any) -> Response:
        """`request` with PUT."""
        return self.request("PUT", path, **options)

    def post(self, path: str, **options: Any) -> Response:
        """`request` with POST."""
        return self.request("POST", path, **options)

    def delete(self, path: str, **options: Any) -> Response:
        """`request` with DELETE."""
        return self.request("DELETE", path, **options)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = NOTHING,
        body: bytes | None = None,
        headers: Mapping[str, str | None] | HeaderPairs | None = None,
        version: str | None = LATEST,
    ) -> Response:
        """Send one request and return its answer, whatever it is.

        Args:
            json: a value to send as JSON, with `Content-Type: application/json`.
            body: bytes to send as they are, with no `Content-Type` but what `headers` says.
            headers: replace the defaults of the same name; None removes one; a sequence of pairs
                may repeat a name.
            version: the microversion to ask for; None sends no version header.
        """
        pairs = [*self.headers.items()]
        if version is not None:
            pairs.append(("OpenStack-API-Version", f"placement {version}"))
        if not isinstance(json, Unset):
            body = jsonlib.dumps(json).encode()
            pairs.append(("Content-Type", "application/json"))
        if body is not None or method in ("POST", "PUT"):
            pairs.append(("Content-Length", str(len(body or b""))))
        response = self.transport.send(method, path, merged(pairs, headers or ()), body)
        for observe in self.observers:
            observe(Exchange(method, path.partition("?")[0], version, response))
        return response


class WSGITransport:
    """Calls a WSGI application as a server would, and holds it to the rules of PEP 3333."""

    def __init__(self, app: WSGIApplication, *, script_name: str = "") -> None:
        self.app = app
        self.script_name = script_name

    def send(self, method: str, target: str, headers: HeaderPairs, body: bytes | None) -> Response:
        """Call the application once."""
        started: list[tuple[str, list[tuple[str, str]]]] = []
        written: list[bytes] = []

        def start_response(
            status: str,
            response_headers: list[tuple[str, str]],
            exc_info: tuple[type[BaseException], BaseException, TracebackType]
            | tuple[None, None, None]
            | None = None,
            /,
        ) -> Callable[[bytes], object]:
            assert not started or exc_info, "start_response was called twice"
            started[:] = [(status, list(response_headers))]
            return written.append

        environ = wsgi_environ(method, target, headers, body, script_name=self.script_name)
        parts = self.app(environ, start_response)
        try:
            content = b"".join(parts)
        finally:
            close = getattr(parts, "close", None)
            if close is not None:
                close()
        (status, response_headers) = started[0]
        return Response(int(status[:3]), Headers(response_headers), b"".join(written) + content)


class SocketTransport:
    """Speaks HTTP/1.1 to a server, over one connection that is opened again when it was lost."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        assert parts.hostname is not None, base_url
        self.host, self.port, self.prefix = parts.hostname, parts.port or 80, parts.path.rstrip("/")
        self.connection: http.client.HTTPConnection | None = None

    def send(self, method: str, target: str, headers: HeaderPairs, body: bytes | None) -> Response:
        """Send one request; once more on a new connection if the server had closed the old one."""
        reused = self.connection is not None
        try:
            return self._exchange(method, target, headers, body)
        except (http.client.RemoteDisconnected, ConnectionError):
            self.close()
            if not reused:
                raise
            return self._exchange(method, target, headers, body)

    def close(self) -> None:
        """Let go of the connection."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def _exchange(
        self, method: str, target: str, headers: HeaderPairs, body: bytes | None
    ) -> Response:
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.host, self.port, timeout=60)
        named = {name.lower() for name, _ in headers}
        self.connection.putrequest(
            method, self.prefix + target, skip_host="host" in named, skip_accept_encoding=True
        )
        for name, value in headers:
            self.connection.putheader(name, value.encode())
        self.connection.endheaders(body)
        answer = self.connection.getresponse()
        response = Response(answer.status, Headers(answer.getheaders()), answer.read())
        if answer.will_close:
            self.close()
        return response


def merged(
    defaults: HeaderPairs, overrides: Mapping[str, str | None] | HeaderPairs
) -> list[tuple[str, str]]:
    """The default headers, with those replaced or removed that the overrides name."""
    pairs = list(overrides.items() if isinstance(overrides, Mapping) else overrides)
    replaced = {name.lower() for name, _ in pairs}
    kept = [(name, value) for name, value in defaults if name.lower() not in replaced]
    return kept + [(name, value) for name, value in pairs if value is not None]


def wsgi_environ(
    method: str, target: str, headers: HeaderPairs, body: bytes | None, *, script_name: str
) -> WSGIEnvironment:
    """The environ that a server would build for a request.

    The path is percent-decoded and stands as latin-1 text, the query is left as it came, and
    repeated headers are joined by a comma.
    """
    path, _, query = target.partition("?")
    environ: WSGIEnvironment = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": script_name,
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "HTTP_HOST": "localhost",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": BytesIO(body or b""),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    joined: dict[str, str] = {}
    for name, value in headers:
        key = name.upper().replace("-", "_")
        key = key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"
        text = value.encode().decode("latin-1")
        joined[key] = f"{joined[key]},{text}" if key in joined else text
    if "chunked" in joined.get("HTTP_TRANSFER_ENCODING", ""):
        environ["wsgi.input_terminated"] = True
    return environ | joined
