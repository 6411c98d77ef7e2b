# SPDX-License-Identifier: Apache-2.0
"""The order of errors as a table: a request with every fault at once, repaired fault by fault.

Source: rest-api.md 1.14.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.client import NOTHING, Client, Response

#: Headers of the tables: a caller who may do nothing, one who may do everything, media types.
FORBIDDEN = {"X-Roles": "nobody"}
ALLOWED = {"X-Roles": "admin,service"}
JSON = {"Content-Type": "application/json"}
TEXT = {"Content-Type": "text/plain"}


@dataclass
class Ask:
    """A request that is repaired step by step; `send` sends it as it is."""

    method: str
    path: str
    version: str = "1.39"
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = NOTHING
    body: bytes | None = None

    def send(self, client: Client) -> Response:
        return client.request(
            self.method,
            self.path,
            json=self.json,
            body=self.body,
            headers=self.headers,
            version=self.version,
        )


class Row(NamedTuple):
    """A repair, and the response after it.

    `repair` names the attributes of the `Ask` to set; headers are merged.
    """

    repaired: str
    repair: Mapping[str, Any]
    status: int
    says: str = ""


def assert_precedence(client: Client, ask: Ask, rows: Sequence[Row]) -> None:
    """Send the request after each repair; each response must be that of its row."""
    for row in rows:
        for name, value in row.repair.items():
            setattr(ask, name, {**ask.headers, **value} if name == "headers" else value)
        answer = ask.send(client)
        assert answer.status == row.status, (row.repaired, answer.status, answer.json)
        if row.says:
            assert row.says in answer.json["errors"][0]["detail"], (row.repaired, answer.json)
