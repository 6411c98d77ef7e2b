# SPDX-License-Identifier: Apache-2.0
"""A gate: an application that says who calls, behind a layer of authentication."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import bcrypt

from berth.api.auth.identity import identify
from berth.api.auth.layers import Layer
from berth.api.environ import CONTEXT
from berth.api.request_log import log_requests
from tests.client import Client, Response

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment


@dataclass
class Clock:
    """Seconds that go by when a test says so."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@cache
def hashed(password: str) -> str:
    """A hash of a password, of the lowest cost there is, and always the same."""
    return bcrypt.hashpw(password.encode(), b"$2b$04$saltsaltsaltsaltsaltsu").decode()


def basic(name: str, password: str) -> dict[str, str]:
    """The header of HTTP Basic."""
    encoded = base64.b64encode(f"{name}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def bearer(token: str) -> dict[str, str]:
    """The header of a bearer token."""
    return {"Authorization": f"Bearer {token}"}


class Gate:
    """Callers knock at it with headers, from an address."""

    def __init__(self, layer: Layer) -> None:
        self._inside = layer(identify(_who))
        self._client = Client.of(log_requests(self._with_address))
        self._address = ""

    def knock(
        self, headers: dict[str, str], *, address: str = "192.0.2.1", path: str = "/traits"
    ) -> Response:
        """Send a request."""
        self._address = address
        return self._client.acting_as(headers).get(path)

    def status(self, headers: dict[str, str], *, address: str = "192.0.2.1") -> int:
        """How a request fares."""
        return self.knock(headers, address=address).status

    def who(self, headers: dict[str, str], *, path: str = "/traits") -> dict[str, Any]:
        """As whom a request is let in."""
        answer = self.knock(headers, path=path)
        assert answer.status == 200, answer.text
        found: dict[str, Any] = answer.json
        return found

    def _with_address(
        self, environ: WSGIEnvironment, start_response: StartResponse
    ) -> Iterable[bytes]:
        environ["REMOTE_ADDR"] = self._address
        return self._inside(environ, start_response)


def _who(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Says who calls, and which headers are left."""
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
    """Put another file into the place of one, as `berth` commands do."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(text)
    new.replace(path)
