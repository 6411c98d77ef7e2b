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

from berth.index import summary_text
from berth.index.block import Block
from berth.index.memory import Memory
from berth.index.summary_text import Rows, Template
from berth.store.resource_classes import rename_resource_class
from tests.candidates.engine import Stand
from tests.client import NOTHING, Client
from tests.world_over_http import changed_over_http
from tests.worlds import Stock, World, aggregate_uuid, consumer_uuid, provider_uuid, world

HOST = provider_uuid("host")

#: Whether somebody asks between the steps of a change, or only when all is done.
ASKED_BETWEEN = pytest.mark.parametrize("asked_between", [False, True])


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


#: Traits and classes of a provider: how they are written, taken away, and shown.
KINDS = pytest.mark.parametrize("kind", ["traits", "resource_classes"])


@ASKED_BETWEEN
@KINDS
def test_what_comes_in_place_of_another_has_its_own_name(
    asking: Asking, asked_between: bool, kind: str
) -> None:
    """A trait or a class is deleted, and a new one gets its id: the summary has the new name."""
    api = asking("resources=VCPU:1")
    part = "traits" if kind == "traits" else "inventories"

    def have(*names: str) -> None:
        totals = {name: {"total": 4} for name in names}
        api.put(part, [*names] if kind == "traits" else {"VCPU": {"total": 8}, **totals})

    def shown() -> set[str]:
        summary = api.summary()
        return {*summary["traits"], *summary["resources"]} - {"VCPU"}

    api.send("PUT", f"/{kind}/CUSTOM_OLD")
    have("CUSTOM_OLD")
    assert shown() == {"CUSTOM_OLD"}
    have()
    for method, name in (("DELETE", "CUSTOM_OLD"), ("PUT", "CUSTOM_NEW")):
        assert not asked_between or shown() == set()
        api.send(method, f"/{kind}/{name}")
    have("CUSTOM_NEW")
    assert shown() == {"CUSTOM_NEW"}


def test_a_renamed_class_has_its_new_name_everywhere(asking: Asking, stand: Stand) -> None:
    """In summaries, in allocations and in queries; the index does not reload the trees for it."""
    standing = stand(World(()))
    api = asking("resources=VCPU:1")
    api.send("PUT", "/resource_classes/CUSTOM_OLD")
    api.put("inventories", {"VCPU": {"total": 8}, "CUSTOM_OLD": {"total": 4}})
    old, new = (Api(api.client, f"resources=CUSTOM_{name}:1") for name in ("OLD", "NEW"))
    assert api.summary()["resources"].keys() == {"VCPU", "CUSTOM_OLD"}
    assert (old.status(), new.status()) == (200, 400)
    rename_resource_class(standing.db, "CUSTOM_OLD", "CUSTOM_NEW")
    assert api.summary()["resources"].keys() == {"VCPU", "CUSTOM_NEW"}
    assert (old.status(), new.status()) == (400, 200)
    (candidate,) = new.ask()["allocation_requests"]
    assert candidate["allocations"] == {HOST: {"resources": {"CUSTOM_NEW": 1}}}


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("traits", "resources=VCPU:1&required=CUSTOM_IT"),
        ("traits", "resources=VCPU:1&root_required=!CUSTOM_IT"),
        ("resource_classes", "resources=CUSTOM_IT:1"),
    ],
)
def test_a_name_that_is_gone_is_unknown(asking: Asking, path: str, question: str) -> None:
    """Also for a query that named it while it existed, until it is created again."""
    api = asking(question)
    api.send("PUT", f"/{path}/CUSTOM_IT")
    assert api.status() == 200
    api.send("DELETE", f"/{path}/CUSTOM_IT")
    assert api.status() == 400
    api.send("PUT", f"/{path}/CUSTOM_IT")
    assert api.status() == 200


@KINDS
def test_what_is_made_again_is_another(asking: Asking, kind: str) -> None:
    """A trait or a class is deleted and created again; a provider with the one that got its old id
    in between does not match."""
    of_traits = kind == "traits"
    api = asking("resources=VCPU:1&required=CUSTOM_IT" if of_traits else "resources=CUSTOM_IT:1")
    api.host("other", VCPU=8)

    def have(host: str, *names: str) -> None:
        totals = {name: {"total": 8} for name in ("VCPU", *names)}
        part, value = ("traits", [*names]) if of_traits else ("inventories", totals)
        api.put(part, value, uuid=provider_uuid(host))

    api.send("PUT", f"/{kind}/CUSTOM_IT")
    have("host", "CUSTOM_IT")
    assert api.hosts() == {"host"}
    have("host")
    api.send("DELETE", f"/{kind}/CUSTOM_IT")
    for name in ("CUSTOM_THIEF", "CUSTOM_IT"):
        api.send("PUT", f"/{kind}/{name}")
    have("host", "CUSTOM_THIEF")
    have("other", "CUSTOM_IT")
    assert api.hosts() == {"other"}


@pytest.mark.parametrize("sign", ["", "!"])
def test_who_joins_an_aggregate_is_found_in_it(asking: Asking, sign: str) -> None:
    """Also for queries that were sent when the aggregate was empty or had other members, and for
    queries with sets of aggregates."""
    api = asking(f"resources=VCPU:1&member_of={sign}{aggregate_uuid('A')}")
    api.host("other", VCPU=8)
    both = {"host", "other"}

    def inside(names: set[str]) -> set[str]:
        return names if not sign else both - names

    api.put("aggregates", [aggregate_uuid("B")], uuid=provider_uuid("other"))
    assert api.hosts() == inside(set())
    api.put("aggregates", [aggregate_uuid("A")])
    assert api.hosts() == inside({"host"})
    api.put("aggregates", [aggregate_uuid(n) for n in "AB"], uuid=provider_uuid("other"))
    assert api.hosts() == inside({"host", "other"})


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


def test_a_tree_that_was_named_is_found_where_it_stands_now(asking: Asking) -> None:
    """`in_tree` names a host; after another host has taken its row, the query finds the right
    one."""
    api = asking(f"resources=VCPU:1&in_tree={provider_uuid('other')}")
    api.host("other", VCPU=8)
    assert api.hosts() == {"other"}
    api.send("DELETE", f"/resource_providers/{HOST}")
    assert api.hosts() == {"other"}
    api.send("DELETE", f"/resource_providers/{provider_uuid('other')}")
    assert api.hosts() == set()


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


def test_a_summary_follows_its_tree(asking: Asking) -> None:
    """A tree that gains and loses a child is described with it and without it."""
    api, child = asking("resources=VCPU:1"), provider_uuid("child")
    below = {"name": "child", "uuid": child, "parent_provider_uuid": HOST}
    assert api.ask()["provider_summaries"].keys() == {HOST}
    api.send("POST", "/resource_providers", **below)
    assert api.summary(child)["root_provider_uuid"] == HOST
    api.send("DELETE", f"/resource_providers/{child}")
    assert api.ask()["provider_summaries"].keys() == {HOST}


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


def test_one_request_has_an_answer_of_its_own_in_each_form(stand: Stand) -> None:
    """Results that were kept for one microversion are not used for another."""
    standing = stand("host  VCPU=4\n  disk  DISK_GB=4\nboth  VCPU=4  DISK_GB=4  PCPU=1")
    minors = (10, 12, 17, 27, 29, 34, 29, 12)
    path = "/allocation_candidates?resources=VCPU:1,DISK_GB:1"
    again = [standing.client.get(path, version=f"1.{minor}").body for minor in minors]
    assert len({*again}) == len({*minors})
    for minor, body in zip(minors, again, strict=True):
        standing.forget()
        assert standing.client.get(path, version=f"1.{minor}").body == body


HOSTS_COUNT = 40
HOSTS = world("\n".join(f"host{number}  VCPU=8" for number in range(HOSTS_COUNT)))


def test_a_text_of_a_summary_is_made_once(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second response has the texts of the first."""
    made: list[int] = []
    fill = summary_text.filled

    def counted(template: Template, block: Block, rows: Rows) -> list[bytes]:
        made.append(len(rows))
        return fill(template, block, rows)

    monkeypatch.setattr(summary_text, "filled", counted)
    standing = stand(HOSTS)
    assert standing.queried("resources=VCPU:1") == standing.queried("resources=VCPU:1")
    assert made == [HOSTS_COUNT]


@pytest.mark.parametrize("texts_max", [0, 1, 25, 60])
def test_no_more_texts_are_kept_than_there_is_room_for(stand: Stand, texts_max: int) -> None:
    """The answers stay the same, whatever was asked before."""
    standing = stand(HOSTS)

    def kept() -> list[bytes]:
        blocks = (block for _, block in standing.index.snapshot().occupied())
        return [text for block in blocks for text in block.summaries.tolist() if text]

    whole = standing.queried("resources=VCPU:1")
    each = max(map(len, kept())) + summary_text.OBJECT_BYTES
    standing.forget(Memory(texts_max * each))
    for name in HOSTS.by_name:
        standing.queried(f"resources=VCPU:1&in_tree=<rp:{name}>")
        assert sum(map(len, kept())) <= texts_max * each
    assert standing.queried("resources=VCPU:1") == whole
    assert sum(map(len, kept())) <= texts_max * each
