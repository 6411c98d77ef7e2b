# SPDX-License-Identifier: Apache-2.0
"""When and how large bodies use the service's resources."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from berth.edge.receiving import SMALL
from tests.api import configured
from tests.client import ADMIN, Client, Response, wsgi_environ
from tests.e2e.serving import PATIENCE
from tests.worlds import provider_uuid

pytestmark = pytest.mark.in_process

LARGE = SMALL * 2


class Watched(BytesIO):
    """A body that can be withheld, and counts the bytes read."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.is_awaited, self.comes = threading.Event(), threading.Event()
        self.comes.set()

    def read(self, size: int | None = -1, /) -> bytes:
        """A piece, once the test lets it arrive."""
        self.is_awaited.set()
        assert self.comes.wait(PATIENCE)
        return super().read(size)


def post(client: Client, body: Watched, token: str | None = "admin") -> Response:
    """POST a new provider with a body of this announced length."""

    def server(environ: dict[str, Any], start_response: Any) -> Any:
        environ["wsgi.input"] = body
        return client.transport.app(environ, start_response)  # type: ignore[attr-defined]

    headers = {**ADMIN, "X-Auth-Token": token, "Content-Type": "application/json"}
    length = {"Content-Length": str(len(body.getvalue()))}
    return Client.of(server).post("/resource_providers", headers=headers | length)


def new_provider(name: str, length: int = 0) -> Watched:
    """A body for it of this length."""
    return Watched(json.dumps({"name": name, "uuid": provider_uuid(name)}).encode().ljust(length))


@pytest.fixture
def service(tmp_path: Path) -> Client:
    """A service that runs one write at a time, and lets no other wait."""
    return configured.serve(
        tmp_path, "[berth]\nwrites_running_max = 1\nrequests_waiting_max = 0\nbody_mib_max = 1\n"
    )


@pytest.mark.parametrize("length", [SMALL, SMALL + 1, LARGE])
def test_a_body_of_any_size_is_served(service: Client, length: int) -> None:
    """Whether it is read before authentication or after."""
    assert post(service, new_provider("cn1", length)).status == 200
    assert len(service.get("/resource_providers").json["resource_providers"]) == 1


def test_a_strangers_large_body_is_not_read(service: Client) -> None:
    """401 comes first."""
    body = new_provider("cn1", LARGE)
    assert post(service, body, token=None).status == 401
    assert body.tell() == 0


def test_a_large_body_has_no_place_while_it_comes(service: Client) -> None:
    """Another write runs meanwhile, although only one may run."""
    slow = new_provider("cn1", LARGE)
    slow.comes.clear()
    with ThreadPoolExecutor(1) as pool, ExitStack() as at_the_end:
        at_the_end.callback(slow.comes.set)
        sent = pool.submit(post, service, slow)
        assert slow.is_awaited.wait(PATIENCE)
        assert post(service, new_provider("cn2")).status == 200
        at_the_end.close()
        assert sent.result(PATIENCE).status == 200


def test_a_large_body_waits_for_its_turn_once_it_is_here(
    service: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like any write: here it gets 503, because none may wait."""
    monkeypatch.setattr("berth.edge.admission.REFUSAL_S", 0)
    answers: list[Response] = []

    app = service.transport.app  # type: ignore[attr-defined]

    def while_one_runs(status: str, *_: object) -> None:
        answers.append(post(service, new_provider("cn2", LARGE)))

    body = new_provider("cn1").getvalue()
    headers = [*ADMIN.items(), ("Content-Type", "application/json")]
    headers += [("Content-Length", str(len(body)))]
    app(wsgi_environ("POST", "/resource_providers", headers, body, script_name=""), while_one_runs)
    assert [(answer.status, answer.error["title"]) for answer in answers] == [
        (503, "Service Unavailable")
    ]
