# SPDX-License-Identifier: Apache-2.0
"""Services whose page a browser looks at: `berth serve` with two workers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.api.worlds import provider
from tests.client import Client
from tests.e2e.serving import Service, run_berth, serving

WORKERS = 2


class Serve(Protocol):
    """The fixture `serve`: starts the test's own service in its `tmp_path`."""

    def __call__(self, *, api: str = ..., more: str = ..., port: int = ...) -> Service:
        """As `serving_page`, until the end of the test."""


@contextmanager
def serving_page(
    home: Path, *, api: str = "auth_strategy = noauth2", more: str = "", port: int = 0
) -> Iterator[Service]:
    """A service on a database of its own, with the page.

    Args:
        api: the section [api] of its configuration.
        more: further sections.
        port: 0 for a free one.
    """
    conf = home / "placement.conf"
    conf.write_text(
        f"[api]\n{api}\n[placement_database]\nconnection = sqlite:///{home}/berth.db\n"
        f"sqlite_synchronous = False\n{more}"
    )
    bind = f"127.0.0.1:{port}"
    arguments = ("--config-file", str(conf), "--workers", str(WORKERS), "--bind", bind)
    with serving(home, *arguments) as service:
        yield service


@contextmanager
def emptied(service: Service) -> Iterator[Service]:
    """A shared service, from which everything is taken in the end that the API can take."""
    api = Client.at(service.url)
    try:
        yield service
    finally:
        for kind in ("drains", "flavors"):
            for each in api.get(f"/berth/v1/{kind}").json[kind]:
                api.delete(f"/berth/v1/{kind}/{each['name']}")
        for each in api.get("/berth/v1/aggregates").json["aggregates"]:
            api.put(f"/berth/v1/aggregates/{each['uuid']}", json={"labels": {}})
        while providers := api.get("/resource_providers").json["resource_providers"]:
            # Those that have others below them go in the next round.
            for path in (f"/resource_providers/{each['uuid']}" for each in providers):
                for consumer in api.get(f"{path}/allocations").json["allocations"]:
                    api.delete(f"/allocations/{consumer}")
                api.delete(path)


def create_hosts(api: Client, *names: str) -> None:
    """Hosts with eight processors each."""
    for name in names:
        provider(api, {"VCPU": 8}, name=name)


def create_token(tokens: Path, user: str, *, role: str, project: str = "") -> str:
    """A token in a file of tokens, which a running service reads within a second."""
    tokens.touch(mode=0o600)
    of_project = ("--project", project) if project else ()
    named = ("--user", user, "--role", role, *of_project)
    done = run_berth(tokens.parent, "token", "create", *named, "--file", str(tokens))
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
