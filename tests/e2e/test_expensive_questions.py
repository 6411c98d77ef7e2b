# SPDX-License-Identifier: Apache-2.0
"""Expensive questions at once: each ends with its time, and reads and claims go on meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from tests.client import Client, Response
from tests.e2e.serving import serving
from tests.world_over_http import built_over_http
from tests.worlds import provider_uuid, world

QUESTIONS: Final = 16

#: Sums say that it could be; only trying tells that no device has room for three.
FLEET: Final = world(
    "host  VCPU=100\n" + "\n".join(f"  device{number}  VGPU=1000" for number in range(12))
)
REQUEST: Final[dict[str, Any]] = {
    "groups": {f"_{amount}": {"resources": {"VGPU": amount}} for amount in range(334, 364)}
}
#: What a read or a claim may take beside two searches that want the processor.
SECONDS_MAX: Final = 2.5
#: On a slow machine it may take this share of the time in which all questions are answered.
SHARE_MAX: Final = 0.5


def explained(url: str) -> Response:
    """The answer to one question that nobody could answer in time."""
    sent = {"request": REQUEST, "seconds": 0.5}
    return Client.at(url).post("/berth/v1/explain", json=sent)


def test_reads_and_claims_go_on_beside_expensive_questions(tmp_path: Path) -> None:
    """Sixteen of them, for as long as they take: none says that nothing fits, and those that could
    not be answered in time are refused. A small search does not wait for them."""
    with serving(tmp_path, "--workers", "1") as service:
        client = Client.at(service.url)
        with built_over_http(FLEET, client), ThreadPoolExecutor(QUESTIONS) as pool:
            asking = [pool.submit(explained, service.url) for _ in range(QUESTIONS)]
            slowest, rounds, begin = 0.0, 0, time.monotonic()
            while not all(each.done() for each in asking):
                for use in (read, claim, search):
                    began = time.monotonic()
                    use(client)
                    slowest = max(slowest, time.monotonic() - began)
                rounds += 1
            took = time.monotonic() - begin
            answers = [each.result() for each in asking]
    assert rounds, "all were answered before anything else was asked"
    assert slowest < max(SECONDS_MAX, SHARE_MAX * took)
    complete = [answer.json for answer in answers if answer.status == 200]
    assert complete
    for answer in complete:
        assert (answer["verdict"], answer["complete"]) == ("gave_up", False)
        assert answer["hosts"]["at_least"] is True
    refused = [answer for answer in answers if answer.status != 200]
    assert all(answer.status == 503 and "retry-after" in answer.headers for answer in refused)


def read(client: Client) -> None:
    """Read one provider."""
    assert client.get(f"/resource_providers/{provider_uuid('host')}").status == 200


def search(client: Client) -> None:
    """Ask for one candidate."""
    assert client.get("/allocation_candidates?resources=VCPU:1&limit=1").status == 200


def claim(client: Client) -> None:
    """Claim something, and release it."""
    consumer = f"/allocations/{uuid4()}"
    claimed = client.put(
        consumer,
        json={
            "allocations": {provider_uuid("host"): {"resources": {"VCPU": 1}}},
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        },
    )
    assert claimed.status == 204, claimed.text
    assert client.delete(consumer).status == 204
