# SPDX-License-Identifier: Apache-2.0
"""Cases that repeat GET requests, which the floor can answer too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bench.case import Case
from bench.http1 import Requests
from bench.sample import Round, Samples, ask
from bench.server import RunningServer

#: One that waits for each response, and enough to keep every worker busy.
CLIENTS: Final = (1, 16)


def get_case(
    scenario: str,
    name: str,
    paths: Sequence[str],
    *,
    clients_count: int = 1,
    ladder: str = "",
    for_peer: bool = True,
) -> Case:
    """A case in which clients request some paths in turn.

    Args:
        paths: with their query strings; more than one if the answer to one could be kept.
    """

    def measure(server: RunningServer, wanted: Round) -> Samples:
        requests = Requests(server.port, answer_bytes=wanted.answer_bytes)
        made = [requests.get(path) for path in paths]
        return {"": ask(server, made, wanted, clients_count=clients_count)}

    many = "" if clients_count == 1 else f", {clients_count} clients"
    return Case(scenario, f"{name}{many}", measure, ladder, for_peer=for_peer, has_floor=True)
