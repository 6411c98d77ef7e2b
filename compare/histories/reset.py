# SPDX-License-Identifier: Apache-2.0
"""Emptying a server through its API, whatever a history has left in it."""

from __future__ import annotations

import json
from typing import Any

from bench.server import RunningServer
from compare.script.step import request
from compare.wire import send


def empty(server: RunningServer) -> None:
    """Delete every allocation, provider, custom trait and custom class that can be found.

    Each server is asked what it has: uuids that it made itself are not known otherwise, and after a
    difference the two need not have the same.
    """
    listed = _listed(server, "/resource_providers", "resource_providers")
    for provider in listed:
        allocations = _listed(
            server, f"/resource_providers/{provider['uuid']}/allocations", "allocations"
        )
        for consumer in allocations:
            send(server, request("DELETE", f"/allocations/{consumer}"))
    while listed:
        parents = {provider["parent_provider_uuid"] for provider in listed}
        for provider in listed:
            if provider["uuid"] not in parents:
                send(server, request("DELETE", f"/resource_providers/{provider['uuid']}"))
        left = _listed(server, "/resource_providers", "resource_providers")
        assert len(left) < len(listed), f"{server.name} does not let its providers be deleted"
        listed = left
    for name in _listed(server, "/traits?name=startswith:CUSTOM_", "traits"):
        send(server, request("DELETE", f"/traits/{name}"))
    for shown in _listed(server, "/resource_classes", "resource_classes"):
        if shown["name"].startswith("CUSTOM_"):
            send(server, request("DELETE", f"/resource_classes/{shown['name']}"))


def _listed(server: RunningServer, path: str, key: str) -> Any:
    """What stands under `key` in the answer to a GET."""
    return json.loads(send(server, request("GET", path)).body)[key]
