# SPDX-License-Identifier: Apache-2.0
"""An application that returns its caller, behind a layer of authentication."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bcrypt

from berth.api.environ import CONTEXT
from berth.edge.auth.identity import identify
from berth.edge.auth.layers import Layer
from berth.edge.layers import front
from tests.client import Client, Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


@dataclass
class Clock:
    """A clock that a test advances."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@cache
def hashed(password: str) -> str:
    """A hash of a password with the lowest cost and a fixed salt."""
    return bcrypt.hashpw(password.encode(), b"$2b$04$saltsaltsaltsaltsaltsu").decode()


def basic(name: str, password: str) -> dict[str, str]:
    """The header of HTTP Basic."""
    encoded = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def bearer(token: str) -> dict[str, str]:
    """The header of a bearer token."""
    return {"Authorization": f"Bearer {token}"}


class Gate:
    """Sends requests with headers from an address."""

    def __init__(self, layer: Layer) -> None:
        self._inside = layer(identify(_who))
        self._client = Client.of(front(self._with_address))
        self._address = ""

    def knock(
        self, headers: dict[str, str], *, address: str = "192.0.2.1", path: str = "/traits"
    ) -> Response:
        """Send a request."""
        self._address = address
        return self._client.acting_as(headers).get(path)

    def status(self, headers: dict[str, str], *, address: str = "192.0.2.1") -> int:
        """The status of a request."""
        return self.knock(headers, address=address).status

    def who(self, headers: dict[str, str], *, path: str = "/traits") -> dict[str, Any]:
        """The caller as which a request is authenticated."""
        answer = self.knock(headers, path=path)
        assert answer.status == 200, answer.text
        body: dict[str, Any] = answer.json
        return body

    def _with_address(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        environ["REMOTE_ADDR"] = self._address
        return self._inside(environ, start_response)


def _who(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Returns the caller and the remaining headers."""
    context = environ[CONTEXT]
    said = {
        "user": context.user_id,
        "project": context.project_id,
        "roles": context.roles,
        "system": context.system_scope,
        "headers": {name: text for name, text in environ.items() if name.startswith("HTTP_")},
    }
    start_response("200 OK", [("content-type", "application/json")])
    return [json.dumps(said).encode()]


def replace(path: Path, text: str) -> None:
    """Replace a file atomically, as `berth` commands do."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)
