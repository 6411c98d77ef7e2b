# SPDX-License-Identifier: Apache-2.0
"""Print which modules of berth some requests pass, as JSON: name of the request -> modules.

The berth that is imported answers in this process, from a small SQLite fleet, without a server.
Each request is sent several times; the last one is traced, so what only the first does is not seen.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final
from uuid import UUID

_HOSTS: Final = 20
_TIMES: Final = 4
_CLASSES: Final = {"VCPU": 8, "MEMORY_MB": 16384, "DISK_GB": 100}
_RESOURCES: Final = {"VCPU": 1, "MEMORY_MB": 1024}


def main() -> None:
    """Trace each journey."""
    with tempfile.TemporaryDirectory(prefix="berth-journeys-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder
        service = Service(Path(folder))
        service.build()
        json.dump({name: service.passed(name) for name in JOURNEYS}, sys.stdout)


class Service:
    """A whole application, and what it is asked."""

    def __init__(self, folder: Path) -> None:
        import berth
        from berth import config, deploy
        from berth.edge.app import create_app
        from berth.index import Index

        self._package = f"{Path(berth.__file__).parent}{os.sep}"
        configuration = folder / "placement.conf"
        configuration.write_text(
            "[api]\nauth_strategy = noauth2\n[placement_database]\n"
            f"connection = sqlite:///{folder / 'berth.sqlite'}\n"
        )
        settings = config.read_settings(config.load([str(configuration)]))
        database = deploy.open_prepared(settings)
        self._application = create_app(settings, database, Index(database))

    def build(self) -> None:
        """A few hosts."""
        for number in range(_HOSTS):
            uuid = str(UUID(int=number))
            self.send("POST", "/resource_providers", {"name": f"host{number}", "uuid": uuid})
            inventories = {name: {"total": total} for name, total in _CLASSES.items()}
            body = {"resource_provider_generation": 0, "inventories": inventories}
            self.send("PUT", f"/resource_providers/{uuid}/inventories", body)

    def passed(self, name: str) -> list[str]:
        """The modules that one of the journeys passes."""
        modules: set[str] = set()

        def note(frame: FrameType, event: str, _: object) -> None:
            file = frame.f_code.co_filename
            if event == "call" and file.startswith(self._package):
                modules.add(file.removeprefix(self._package))

        for number in range(_TIMES):
            method, path, body = JOURNEYS[name](
                UUID(int=_TIMES * list(JOURNEYS).index(name) + number + 1000)
            )
            if number == _TIMES - 1:
                sys.setprofile(note)
            try:
                self.send(method, path, body)
            finally:
                sys.setprofile(None)
        return sorted(modules)

    def send(self, method: str, path: str, body: object = None) -> None:
        """Send a request, which must succeed."""
        content = b"" if body is None else json.dumps(body).encode()
        path, _, query = path.partition("?")
        environ: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "REMOTE_ADDR": "127.0.0.1",
            "HTTP_X_AUTH_TOKEN": "admin",
            "HTTP_OPENSTACK_API_VERSION": "placement 1.39",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(content),
            "wsgi.errors": sys.stderr,
        }
        if content:
            environ |= {"CONTENT_TYPE": "application/json", "CONTENT_LENGTH": str(len(content))}
        statuses: list[str] = []

        def start_response(status: str, *_: object) -> Callable[[bytes], object]:
            statuses.append(status)
            return print

        text = b"".join(self._application(environ, start_response))
        assert statuses[0] < "3", f"{method} {path}: {statuses[0]} {text.decode()}"


def _candidates(_: UUID) -> tuple[str, str, object]:
    return "GET", "/allocation_candidates?resources=VCPU:1,MEMORY_MB:1024&limit=10", None


def _claim(consumer: UUID) -> tuple[str, str, object]:
    body = {
        "allocations": {str(UUID(int=0)): {"resources": _RESOURCES}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    return "PUT", f"/allocations/{consumer}", body


def _place(consumer: UUID) -> tuple[str, str, object]:
    wanted = {"uuid": str(consumer), "project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    body = {"request": {"groups": {"": {"resources": _RESOURCES}}}, "consumers": [wanted]}
    return "POST", "/berth/v1/place", body


def _explain(_: UUID) -> tuple[str, str, object]:
    return (
        "POST",
        "/berth/v1/explain",
        {"request": {"groups": {"": {"resources": {"VCPU": 500}}}}},
    )


JOURNEYS: Final = {
    "GET candidates": _candidates,
    "PUT allocations": _claim,
    "POST place": _place,
    "POST explain": _explain,
}


if __name__ == "__main__":
    main()
