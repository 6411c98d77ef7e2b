# SPDX-License-Identifier: Apache-2.0
"""Everything that a worker caches between requests is dropped when its inputs change.

Each test sends the same query before and after a change. The tests rely on SQLite, which gives the
id of a deleted row to the next new one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.candidates.engine import Stand
from tests.client import NOTHING, Client
from tests.world_over_http import changed_over_http
from tests.worlds import Stock, World, aggregate_uuid, consumer_uuid, provider_uuid

HOST = provider_uuid("host")


class Api:
    """The requests of these tests, all of which must succeed, and one query."""

    def __init__(self, client: Client, question: str) -> None:
        self.client = client
        self.question = question

    def ask(self) -> Any:
        """The response to the query, which is the same text each time."""
        answer = self.client.get(f"/allocation_candidates?{self.question}")
        assert answer.status == 200, answer.text
        return answer.json

    def summary(self, uuid: str = HOST) -> Any:
        """The summary of one provider in the response."""
        return self.ask()["provider_summaries"][uuid]

    def status(self) -> int:
        """The status of the response."""
        return self.client.get(f"/allocation_candidates?{self.question}").status

    def hosts(self) -> set[str]:
        """The names of the roots in the response, for those created with `host`."""
        named = {provider_uuid(name): name for name in ("host", "other")}
        return {named[uuid] for uuid in self.ask()["provider_summaries"]}

    def send(self, method: str, path: str, **body: Any) -> None:
        """Send a write."""
        answer = self.client.request(method, path, json=body or NOTHING)
        assert answer.status in (200, 201, 204), answer.text

    def put(self, part: str, value: Any, *, uuid: str = HOST) -> None:
        """Replace the traits, inventories or aggregates of a provider."""
        generation = self.client.get(f"/resource_providers/{uuid}").json["generation"]
        changed = {part: value, "resource_provider_generation": generation}
        self.send("PUT", f"/resource_providers/{uuid}/{part}", **changed)

    def host(self, name: str, **inventories: int) -> None:
        """Create a provider with this much of some classes."""
        self.send("POST", "/resource_providers", name=name, uuid=provider_uuid(name))
        totals = {each: {"total": total} for each, total in inventories.items()}
        self.put("inventories", totals, uuid=provider_uuid(name))


Asking = Callable[[str], Api]


@pytest.fixture
def asking(stand: Stand) -> Asking:
    """An `Api` of a service that has one host of 8 VCPU."""
    client = stand(World(())).client

    def about(question: str) -> Api:
        api = Api(client, question)
        api.host("host", VCPU=8)
        return api

    return about


def test_a_pool_that_comes_into_an_aggregate_serves_its_trees(asking: Asking) -> None:
    """The new pool serves the trees beside the old one; the query is sent after each step."""
    api = asking("resources=VCPU:1,DISK_GB:1")
    api.put("aggregates", [aggregate_uuid("A")])

    def pools() -> set[str]:
        return set(api.ask()["provider_summaries"]) - {HOST}

    def join(name: str) -> str:
        before = pools()
        api.host(name, DISK_GB=8)
        uuid = provider_uuid(name)
        api.put("traits", ["MISC_SHARES_VIA_AGGREGATE"], uuid=uuid)
        assert pools() == before, "it is in no aggregate yet"
        api.put("aggregates", [aggregate_uuid("A")], uuid=uuid)
        return uuid

    first = join("first")
    assert pools() == {first}
    second = join("second")
    assert pools() == {first, second}
    api.put("aggregates", [], uuid=second)
    assert pools() == {first}
    api.send("DELETE", f"/resource_providers/{first}")
    assert pools() == set()
    api.put("aggregates", [aggregate_uuid("A")], uuid=second)
    assert pools() == {second}


@pytest.mark.parametrize("member", ["in_tree", "under", "not_under"])
def test_a_provider_that_a_group_names_is_found_where_it_stands_now(
    asking: Asking, member: str
) -> None:
    """The same of `/berth/v1`: the last host takes the row of the first."""
    api = asking("")
    for name in ("between", "other"):
        api.host(name, VCPU=8)
    group = {"resources": {"VCPU": 1}, member: [provider_uuid("other")]}

    def found() -> set[str]:
        body = {"request": {"groups": {"": group}}}
        answer = api.client.post("/berth/v1/candidates", json=body)
        assert answer.status == 200, answer.text
        return {each["host"] for each in answer.json["candidates"]}

    names = {"host", "between"} if member == "not_under" else {"other"}
    assert found() == set(map(provider_uuid, names))
    api.send("DELETE", f"/resource_providers/{HOST}")
    assert found() == set(map(provider_uuid, names - {"host"}))


def test_a_summary_follows_its_inventory(asking: Asking) -> None:
    """The capacity and usage in a summary are always current."""
    api = asking("resources=VCPU:1")

    def shown() -> tuple[int, int]:
        vcpu = api.summary()["resources"]["VCPU"]
        return vcpu["capacity"], vcpu["used"]

    assert shown() == (8, 0)
    api.put("inventories", {"VCPU": {"total": 6}})
    assert shown() == (6, 0)
    claim = {"allocations": {HOST: {"resources": {"VCPU": 2}}}, "consumer_generation": None}
    who = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    api.send("PUT", f"/allocations/{consumer_uuid('vm')}", **claim, **who)
    assert shown() == (6, 2)
    api.send("DELETE", f"/allocations/{consumer_uuid('vm')}")
    assert shown() == (6, 0)


#: What the second host has, an amount, and whether that offers it too.
UNITS = (
    ({"min_unit": 4}, 3, False),
    ({"min_unit": 4}, 4, True),
    ({"step_size": 3}, 4, False),
    ({"step_size": 3}, 3, True),
    ({"max_unit": 4}, 5, False),
    ({"max_unit": 4}, 4, True),
)


@pytest.mark.parametrize(("fields", "amount", "both"), UNITS)
def test_units_count_after_an_update_and_after_a_claim(
    stand: Stand, fields: dict[str, int], amount: int, both: bool
) -> None:
    """A claim is applied to the index without the inventory; its units stay."""
    standing = stand("plain  VCPU=8\nother  VCPU=8")
    standing.queried("resources=VCPU:1")
    plain, other = standing.fleet.providers
    before = standing.index.counts.usages
    # As little as can be claimed.
    least = fields.get("min_unit") or fields.get("step_size", 1)
    for used in (0, least):
        stocks = {"VCPU": Stock(8, **fields, used=used)}
        now = replace(standing.fleet, providers=(plain, replace(other, stocks=stocks)))
        changed_over_http(standing.fleet, now, standing.client)
        standing.fleet = now
        offered = {
            name.split(":")[0]
            for name in standing.queried(f"resources=VCPU:{amount}", 33).candidates
        }
        assert offered == ({"plain", "other"} if both else {"plain"})
    assert standing.index.counts.usages == before + 1
