# SPDX-License-Identifier: Apache-2.0
"""Lists of a large fleet: correct bytes in little memory."""

from __future__ import annotations

import json
import sqlite3
import tracemalloc
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest

from berth.api.answers import LONG
from berth.api.placement.providers import render
from berth.model.ids import Generation, ProviderId, ProviderUUID
from berth.model.provider import Provider
from tests.api import configured
from tests.client import ADMIN, Client, wsgi_environ

pytestmark = pytest.mark.in_process

#: As many as make a few times what is kept as it is.
COUNT = 6000

NAMES = ("host-{}", 'a "quoted" \\ one, {}', "Straße {}", "\u2028<{}>&\x07")


def uuid_of(number: int) -> ProviderUUID:
    """A uuid by number."""
    return ProviderUUID(str(uuid.UUID(int=number << 64)))


def fleet() -> Iterator[Provider]:
    """Trees of two providers, with names of every kind."""
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
    configured.serve(folder)
    with closing(sqlite3.connect(folder / "placement.db")) as db, db:
        db.executemany(
            "INSERT INTO resource_providers (id, uuid, name, generation, parent_provider_id,"
            " root_provider_id, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    *(provider.id, provider.uuid, provider.name, provider.generation),
                    None if provider.parent_uuid is None else provider.id - 1,
                    provider.id if provider.parent_uuid is None else provider.id - 1,
                    f"2026-01-0{1 + (provider.id == COUNT // 2)} 03:04:05.000000",
                )
                for provider in fleet()
            ),
        )
    # Only now is the fleet loaded: no journal names it.
    return configured.serve(folder)


def ask(service: Client, path: str = "/resource_providers", **environ: str) -> Any:
    """Status, headers, and the iterable that the server gets."""
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
    """Byte for byte the representation of each provider, at each microversion and mount prefix."""
    mounted = Client.of(service.transport.app, script_name=mount)  # type: ignore[attr-defined]
    answer = mounted.get("/resource_providers", version=f"1.{minor}")
    quoted = mount.replace("%", "%25").replace("\u00e9", "%E9")
    shown = [render(provider, quoted, minor) for provider in fleet()]
    assert answer.body == msgspec.json.encode({"resource_providers": shown})
    assert json.loads(answer.body)["resource_providers"][0]["uuid"] == uuid_of(1)
    for number, one in zip((1, 2, 3, 4), shown, strict=False):
        alone = mounted.get(f"/resource_providers/{uuid_of(number)}", version=f"1.{minor}")
        assert alone.body == msgspec.json.encode(one)
    assert len(answer.body) > 2 * LONG
    assert answer.headers["content-length"] == str(len(answer.body))
    assert answer.headers["content-type"] == "application/json"
    if minor >= 15:
        # That of the newest, which is somewhere in the middle.
        assert answer.headers["last-modified"] == "Fri, 02 Jan 2026 03:04:05 GMT"
        assert answer.headers["cache-control"] == "no-cache"


def test_a_long_list_is_sent_in_pieces_and_held_in_little(service: Client) -> None:
    """The whole body is never in memory, neither while it is rendered nor while it is sent."""
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


def test_a_list_without_items_is_empty(service: Client) -> None:
    """It is sent at once, like any short list."""
    assert service.get("/resource_providers?name=nobody").body == b'{"resource_providers":[]}'
    *_, body = ask(service, f"/resource_providers?in_tree={uuid_of(1)}")
    assert isinstance(body, list)
    assert len(json.loads(body[0])["resource_providers"]) == 2
