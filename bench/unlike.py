# SPDX-License-Identifier: Apache-2.0
"""A fleet in which no two hosts are alike, and a service of it in this process.

Each host is a tree of seven providers: a root, two NUMA nodes, two devices in each. Classes are
where one expects them, but the traits, the amounts and the aggregates of each provider are drawn,
so that almost every tree is a shape of its own. Nothing that is decided once for a shape is decided
for more than one host.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5
from wsgiref.types import WSGIApplication

JSON = dict[str, Any]

#: Of a root, a NUMA node and a device.
CLASSES: Final = (("DISK_GB", "CUSTOM_LICENCE"), ("VCPU", "MEMORY_MB"), ("VGPU", "SRIOV_NET_VF"))
TRAITS: Final = tuple(f"CUSTOM_T{number}" for number in range(12))
#: What one trait in ten providers of a pool shares.
SHARED: Final = "CUSTOM_STORAGE"
ZONES: Final = 8
RACK: Final = 5
FLAVORS: Final = 60

_NAMESPACE: Final = UUID("5f0a4c0e-6d7e-4d0f-9a53-1b7a1c1f6a54")


class Answer(NamedTuple):
    """The status of an answer, and its body."""

    status: int
    body: bytes


class Service:
    """A service in this process."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        """A service of the database in a folder, which is made if there is none."""
        from berth import config, deploy

        configuration = folder / "placement.conf"
        configuration.write_text(
            "[api]\nauth_strategy = noauth2\n[placement_database]\nsync_on_startup = True\n"
            f"sqlite_synchronous = False\nconnection = sqlite:///{folder / 'berth.sqlite'}\n"
            f"[berth]\nlease_sweep_seconds = 0\nexplain_empty_answers = False\n{settings}"
        )
        conf = config.load([str(configuration)])
        self._application: WSGIApplication = deploy.load_application(conf)

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        """The answer to one request."""
        sent = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        answered: list[int] = []

        def start_response(status: str, *_: object) -> Any:
            answered.append(int(status[:3]))

        pieces = self._application(
            {
                "REQUEST_METHOD": method,
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "CONTENT_LENGTH": str(len(sent)),
                "CONTENT_TYPE": "application/json",
                "HTTP_X_AUTH_TOKEN": "admin",
                "HTTP_X_ROLES": "admin,service",
                "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
                "SERVER_NAME": "localhost",
                "SERVER_PORT": "80",
                "wsgi.input": io.BytesIO(sent),
                "wsgi.url_scheme": "http",
            },
            start_response,
        )
        whole = b"".join(pieces)
        return Answer(answered[0], whole)

    def made(self, method: str, path: str, body: object) -> None:
        """Send a request that must succeed."""
        answer = self.ask(method, path, body)
        assert answer.status < 300, (path, answer)


def fill(service: Service, hosts: int, *, seed: int = 0) -> None:
    """Make the fleet, its labels, a pool in each zone, and flavors."""
    rng = Random(seed)
    zones, racks = range(ZONES), range(-(-hosts // RACK))
    for zone in zones:
        service.made("POST", "/resource_providers", {"name": f"pool{zone}"})
    for kind, numbers in (("zone", zones), ("rack", racks)):
        for number in numbers:
            path = f"/berth/v1/aggregates/{aggregate(kind, number)}"
            service.made("PUT", path, {"labels": {kind: f"{kind}{number}"}})
    for zone in zones:
        shared = {
            "name": f"pool{zone}",
            "inventories": {SHARED: {"total": 10_000}},
            "traits": ["MISC_SHARES_VIA_AGGREGATE"],
            "aggregates": [aggregate("zone", zone)],
        }
        _put_tree(service, f"pool{zone}", [shared])
    for number in range(hosts):
        _put_tree(service, f"host{number}", list(tree(number, rng)))
    for number in range(FLAVORS):
        flavor = {"request": {"groups": _flavor_groups(number, rng)}}
        service.made("PUT", f"/berth/v1/flavors/flavor{number}", flavor)


def aggregate(kind: str, number: int) -> str:
    """The uuid of the aggregate of a zone or a rack."""
    return str(uuid5(_NAMESPACE, f"{kind}{number}"))


def tree(number: int, rng: Random) -> Iterator[JSON]:
    """The providers of a host."""
    name = f"host{number}"
    places = [("zone", rng.randrange(ZONES)), ("rack", number // RACK)]
    yield {
        "name": name,
        "parent": None,
        "inventories": _inventories(0, rng),
        "traits": _traits(rng),
        "aggregates": [aggregate(*place) for place in places],
    }
    for node in range(2):
        numa = f"{name}_numa{node}"
        yield {"name": numa, "parent": name, **_described(1, rng)}
        for device in range(2):
            yield {"name": f"{numa}_device{device}", "parent": numa, **_described(2, rng)}


def _described(level: int, rng: Random) -> JSON:
    return {"inventories": _inventories(level, rng), "traits": _traits(rng)}


def _traits(rng: Random) -> list[str]:
    return rng.sample(TRAITS, rng.randrange(1, 6))


def _inventories(level: int, rng: Random) -> JSON:
    classes = rng.sample(CLASSES[level], rng.randrange(1, 3))
    return {name: _inventory(rng) for name in classes}


def _inventory(rng: Random) -> JSON:
    total = rng.randrange(8, 1000)
    return {"total": total, "reserved": rng.randrange(total), "step_size": rng.choice((1, 1, 1, 2))}


def _flavor_groups(number: int, rng: Random) -> JSON:
    name = rng.choice([name for level in CLASSES for name in level])
    if number % 3 == 0:
        return {"": {"resources": {name: rng.randrange(1, 40)}}}
    return {
        f"_{group}": {
            "resources": {rng.choice(CLASSES[1 + group % 2]): rng.randrange(1, 40)},
            "required": [rng.choice(TRAITS)],
        }
        for group in range(1 + number % 6)
    }


def _put_tree(service: Service, name: str, providers: list[JSON]) -> None:
    body = {"providers": providers, "create_names": True}
    service.made("PUT", f"/berth/v1/trees/{name}", body)
