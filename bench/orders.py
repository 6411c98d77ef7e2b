# SPDX-License-Identifier: Apache-2.0
"""Scenario orders: `POST /berth/v1/candidates` in each order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from bench.case import Case
from bench.fleet import TRAIT
from bench.http1 import Requests
from bench.sample import Round, Samples, ask
from bench.server import RunningServer

ORDERS_SCENARIO: Final = "orders"

#: Candidates in an answer.
LIMIT: Final = 10

JSONObject = Mapping[str, Any]

FLAT: Final[JSONObject] = {
    "groups": {"": {"resources": {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}}}
}
#: Two candidates for each tree of seven, as `bench.nested`.
NESTED: Final[JSONObject] = {
    "groups": {
        "_CPU": {"resources": {"VCPU": 2, "MEMORY_MB": 1024}},
        "_FPGA": {"resources": {"FPGA": 1}},
        "_GPU": {"resources": {"PGPU": 1}},
    },
    "together": [{"groups": ["_CPU", "_FPGA", "_GPU"], "at": "subtree"}],
}
ORDERS: Final[Mapping[str, JSONObject]] = {
    "any": {},
    "pack": {"by": "pack"},
    "pack among 512": {"by": "pack", "among": 512},
    "spread": {"by": "spread"},
    "random": {"by": "random"},
    "prefer": {"prefer": [{"weight": 5, "required": [TRAIT]}]},
}


def flat_order_cases() -> list[Case]:
    """On hosts without children."""
    return _order_cases(FLAT)


def nested_order_cases() -> list[Case]:
    """On trees of seven."""
    return _order_cases(NESTED)


def _order_cases(request: JSONObject) -> list[Case]:
    """A request in each order, and with one candidate of each host."""
    limits: Mapping[str, JSONObject] = {"": {}, ", one of each host": {"per_host": 1}}
    return [
        _case(
            f"{name}{of_hosts}",
            "/berth/v1/candidates",
            {"request": request, "order": order, "limit": LIMIT, **members},
        )
        for name, order in ORDERS.items()
        for of_hosts, members in limits.items()
    ]


def _case(name: str, path: str, body: JSONObject) -> Case:
    def measure(server: RunningServer, wanted: Round) -> Samples:
        requests = Requests(server.port, answer_bytes=wanted.answer_bytes)
        made = requests.post(path, json.dumps(body).encode())
        return {"": ask(server, [made], wanted)}

    return Case(ORDERS_SCENARIO, name, measure, for_peer=False)
