# SPDX-License-Identifier: Apache-2.0
"""Lists of everything in a large fleet: the same bytes as ever, in little memory."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
import uuid
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from berth.api.providers import render
from berth.api.rendering import LONG
from berth.model.errors import DatabaseUnavailable
from berth.model.ids import Generation, ProviderId, ProviderUUID
from berth.model.provider import Provider
from berth.store import providers as stored_providers
from tests.api import configured
from tests.client import ADMIN, Client, wsgi_environ

pytestmark = pytest.mark.in_process

#: As many as make a few times what is kept as it is.
COUNT = 6000

NAMES = ("host-{}", 'a "quoted" \\ one, {}', "Straße {}", "\u2028<{}>&\x07")


def uuid_of(number: int) -> ProviderUUID:
    """A uuid for each number."""
    return ProviderUUID(str(uuid.UUID(int=number << 64)))


def fleet() -> Iterator[Provider]:
    """Trees of two, with names of every kind."""
    for number in range(1, COUNT + 1):
        root = number - (number + 1) % 2
        yield Provider(
            ProviderId(number),
            uuid_of(number),
            NAMES[number % len(NAMES)].format(number),
            Generation(number % 7),
            None if root == number else uuid_of(root),
            uuid_of(root),
            None,
            None,
        )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service with the fleet in its database."""
    folder = tmp_path_factory.mktemp("long")
    client = configured.serve(folder)
    with closing(sqlite3.connect(folder / "placement.db")) as db, db:
        db.executemany(
            "INSERT INTO resource_providers (id, uuid, name, generation, parent_provider_id,"
            " root_provider_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    *(one.id, one.uuid, one.name, one.generation),
                    None if one.parent_uuid is None else one.id - 1,
                    one.id if one.parent_uuid is None else one.id - 1,
                    f"2026-01-0{1 + (one.id == COUNT // 2)} 03:04:05.000000",
                )
                for one in fleet()
            ),
        )
    return client


def ask(service: Client, path: str = "/resource_providers", **environ: str) -> Any:
    """Status, headers, and what the server is given to send."""
    told: list[Any] = []
    headers = [*ADMIN.items(), ("OpenStack-API-Version", "placement 1.39")]
    app = service.transport.app  # type: ignore[attr-defined]
    environment = wsgi_environ("GET", path, headers, None, script_name="") | environ
    body = app(environment, lambda status, headers: told.extend((status, dict(headers))))
    return *told, body


@pytest.mark.parametrize(
    ("minor", "mount"), [(0, ""), (6, ""), (11, "/placement/%7b\u00e9"), (39, "/placement")]
)
def test_a_long_list_is_what_its_items_are(service: Client, minor: int, mount: str) -> None:
    """Byte for byte what each provider is by itself, at each microversion and mount."""
    mounted = Client.of(service.transport.app, script_name=mount)  # type: ignore[attr-defined]
    answer = mounted.get("/resource_providers", version=f"1.{minor}")
    quoted = mount.replace("%", "%25").replace("\u00e9", "%E9")
    shown = [render(one, quoted, minor) for one in fleet()]
    assert answer.body == msgspec.json.encode({"resource_providers": shown})
    assert json.loads(answer.body)["resource_providers"][0]["uuid"] == uuid_of(1)
    assert len(answer.body) > 2 * LONG
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["content-type"] == "application/json"
    if minor >= 15:
        # That of the newest, which is somewhere in the middle.
        assert answer.headers["last-modified"] == "Fri, 02 Jan 2026 03:04:05 GMT"
        assert answer.headers["cache-control"] == "no-cache"


def test_a_long_list_is_sent_in_pieces_and_held_in_little(service: Client) -> None:
    """Neither while it is made nor while it is sent is all of it in memory."""
    ask(service)
    tracemalloc.start()
    try:
        status, headers, body = ask(service)
        length = int(headers["content-length"])
        lengths = [len(piece) for piece in body]
        assert tracemalloc.get_traced_memory()[1] < length
    finally:
        tracemalloc.stop()
    assert (status, sum(lengths)) == ("200 OK", length)
    assert max(lengths) < LONG


def test_a_list_that_fails_half_way_is_an_error(
    service: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is sent before all of it was read."""
    read = stored_providers.iter_providers

    def failing(*arguments: Any) -> Iterable[list[Provider]]:
        parts = read(*arguments)
        yield next(parts)
        yield next(parts)
        raise DatabaseUnavailable("gone")

    monkeypatch.setattr(stored_providers, "iter_providers", failing)
    answer = service.get("/resource_providers")
    assert (answer.status, answer.error["title"]) == (503, "Service Unavailable")


def test_a_list_without_items_is_empty(service: Client) -> None:
    """And a short one is sent at once."""
    assert service.get("/resource_providers?name=nobody").body == b'{"resource_providers":[]}'
    *_, body = ask(service, f"/resource_providers?in_tree={uuid_of(1)}")
    assert isinstance(body, list)
    assert len(json.loads(body[0])["resource_providers"]) == 2
