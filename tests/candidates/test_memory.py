# SPDX-License-Identifier: Apache-2.0
"""Everything that a worker caches between requests is dropped when its inputs change.

Each test sends the same query before and after a change. The tests rely on SQLite, which gives the
id of a deleted row to the next new one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from berth.api import allocation_candidates
from berth.candidates.plan import PLAN_BYTES
from berth.candidates.request import CandidatesRequest
from berth.candidates.resolve import resolve
from berth.config import options
from berth.direct import PlacementDirect
from berth.index import Index
from berth.index.memory import Memory
from berth.model.errors import UnknownTraits
from berth.model.ids import AggregateUUID, ProviderUUID
from berth.model.sentinels import UNSET
from berth.store.aggregates import replace_aggregates
from berth.store.engine.database import Database
from berth.store.resource_classes import rename_resource_class
from tests.candidates.engine import ask_with, form_at, request_of, snapshot_of
from tests.client import NOTHING, Client
from tests.queries import parse_query
from tests.world_in_store import build_in_store
from tests.worlds import aggregate_uuid, consumer_uuid, provider_uuid, world

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
def asking(client: Client) -> Asking:
    """An `Api` for the test's application, with one host of 8 VCPU."""

    def about(question: str) -> Api:
        api = Api(client, question)
        api.host("host", VCPU=8)
        return api

    return about


@ASKED_BETWEEN
def test_a_trait_that_comes_in_place_of_another_has_its_own_name(
    asking: Asking, asked_between: bool
) -> None:
    """A trait is deleted, and a new one gets its id: the summary has the new name."""
    api = asking("resources=VCPU:1")
    api.send("PUT", "/traits/CUSTOM_OLD")
    api.put("traits", ["CUSTOM_OLD"])
    assert api.summary()["traits"] == ["CUSTOM_OLD"]
    for method, path in (
        ("DELETE", f"/resource_providers/{HOST}/traits"),
        ("DELETE", "/traits/CUSTOM_OLD"),
        ("PUT", "/traits/CUSTOM_NEW"),
    ):
        api.send(method, path)
        if asked_between:
            assert api.summary()["traits"] == []
    api.put("traits", ["CUSTOM_NEW"])
    assert api.summary()["traits"] == ["CUSTOM_NEW"]


@ASKED_BETWEEN
def test_a_class_that_comes_in_place_of_another_has_its_own_name(
    asking: Asking, asked_between: bool
) -> None:
    """A class is deleted, and a new one gets its id: the summary has the new name."""
    api = asking("resources=VCPU:1")
    api.send("PUT", "/resource_classes/CUSTOM_OLD")
    api.put("inventories", {"VCPU": {"total": 8}, "CUSTOM_OLD": {"total": 4}})
    assert api.summary()["resources"].keys() == {"VCPU", "CUSTOM_OLD"}
    for method, path in (
        ("DELETE", f"/resource_providers/{HOST}/inventories/CUSTOM_OLD"),
        ("DELETE", "/resource_classes/CUSTOM_OLD"),
        ("PUT", "/resource_classes/CUSTOM_NEW"),
    ):
        api.send(method, path)
        if asked_between:
            assert api.summary()["resources"].keys() == {"VCPU"}
    api.put("inventories", {"VCPU": {"total": 8}, "CUSTOM_NEW": {"total": 4}})
    assert api.summary()["resources"].keys() == {"VCPU", "CUSTOM_NEW"}


def test_a_renamed_class_has_its_new_name_everywhere(asking: Asking, database: Database) -> None:
    """In summaries, in allocations and in queries; the index does not reload the trees for it."""
    api = asking("resources=VCPU:1")
    api.send("PUT", "/resource_classes/CUSTOM_OLD")
    api.put("inventories", {"VCPU": {"total": 8}, "CUSTOM_OLD": {"total": 4}})
    old, new = (Api(api.client, f"resources=CUSTOM_{name}:1") for name in ("OLD", "NEW"))
    assert api.summary()["resources"].keys() == {"VCPU", "CUSTOM_OLD"}
    assert (old.status(), new.status()) == (200, 400)
    rename_resource_class(database, "CUSTOM_OLD", "CUSTOM_NEW")
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


def test_a_trait_made_again_is_another(asking: Asking) -> None:
    """A trait is deleted and created again; a provider with the trait that got its old id in
    between does not match."""
    api = asking("resources=VCPU:1&required=CUSTOM_IT")
    api.host("other", VCPU=8)
    api.send("PUT", "/traits/CUSTOM_IT")
    api.put("traits", ["CUSTOM_IT"])
    assert api.hosts() == {"host"}
    api.put("traits", [])
    api.send("DELETE", "/traits/CUSTOM_IT")
    for name in ("CUSTOM_THIEF", "CUSTOM_IT"):
        api.send("PUT", f"/traits/{name}")
    api.put("traits", ["CUSTOM_THIEF"])
    api.put("traits", ["CUSTOM_IT"], uuid=provider_uuid("other"))
    assert api.hosts() == {"other"}


def test_a_class_made_again_is_another(asking: Asking) -> None:
    """A class is deleted and created again; a provider with the class that got its old id in
    between does not match."""
    api = asking("resources=CUSTOM_IT:1")
    api.send("PUT", "/resource_classes/CUSTOM_IT")
    api.host("other", CUSTOM_IT=8)
    assert api.hosts() == {"other"}
    api.put("inventories", {}, uuid=provider_uuid("other"))
    api.send("DELETE", "/resource_classes/CUSTOM_IT")
    for name in ("CUSTOM_THIEF", "CUSTOM_IT"):
        api.send("PUT", f"/resource_classes/{name}")
    api.put("inventories", {"CUSTOM_THIEF": {"total": 8}}, uuid=provider_uuid("other"))
    api.put("inventories", {"CUSTOM_IT": {"total": 8}})
    assert api.hosts() == {"host"}


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


def test_readers_of_two_moments_do_not_mislead_each_other(database: Database) -> None:
    """A query that a reader of an older snapshot cached first still gives the current state."""
    build_in_store(world("host VCPU=8"), database)
    index = Index(database)
    before = index.snapshot()
    in_it = [AggregateUUID(aggregate_uuid("A"))]
    replace_aggregates(database, ProviderUUID(HOST), in_it, UNSET)
    now = index.snapshot()
    request = request_of(parse_query("resources=VCPU:1&member_of=<agg:A>", 39))
    answers = [HOST.encode() in ask_with(each, request, form_at(39)) for each in (before, now) * 2]
    assert answers == [False, True] * 2


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


def test_one_request_has_an_answer_of_its_own_in_each_form(prepared: Path) -> None:
    """Results that were cached for one microversion are not reused for another."""
    query = parse_query("resources=VCPU:1,DISK_GB:1", 39)
    minors = (10, 12, 17, 27, 29, 34, 29, 12)
    tree = world("""
        host    VCPU=4
          disk  DISK_GB=4
        both    VCPU=4  DISK_GB=4  PCPU=1
    """)
    with snapshot_of(tree, prepared) as snapshot:
        request = request_of(query)
        again = [ask_with(snapshot, request, form_at(minor)) for minor in minors]
        first = [ask_with(snapshot, request_of(query), form_at(minor)) for minor in minors]
    assert again == first
    assert len(set(first)) == len(set(minors))


def test_equal_requests_share_a_plan(prepared: Path) -> None:
    """Requests are compared by value. The order of classes is part of it, since the answer follows
    it."""
    texts = (
        "resources=VCPU:1,DISK_GB:1",
        "resources=VCPU:1,DISK_GB:1",
        "resources=DISK_GB:1,VCPU:1",
    )
    with snapshot_of(world("host VCPU=4 DISK_GB=4"), prepared) as snapshot:
        first, again, other = (
            resolve(snapshot, request_of(parse_query(text, 39)), one_per_tree=False)
            for text in texts
        )
    assert first is again
    assert other is not first
    assert first.demands[0].amounts == other.demands[1].amounts


def test_a_question_with_an_unknown_name_is_kept_once(prepared: Path) -> None:
    """A query with an unknown name is cached once and counts towards the limit of the memory; else
    such queries would take unlimited memory."""
    query = "resources=VCPU:1&resources_A=VCPU:1&required_A=CUSTOM_NOBODYS"
    request, memory = request_of(parse_query(query, 39)), Memory()
    with snapshot_of(world("host VCPU=4"), prepared, memory=memory) as snapshot:
        sizes = []
        for _ in range(3):
            with pytest.raises(UnknownTraits):
                ask_with(snapshot, request, form_at(39))
            sizes.append(memory._size)
    assert sizes == [sizes[0]] * 3
    assert sizes[0] > PLAN_BYTES


def test_a_query_string_is_decoded_once(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is short and the microversion is the same."""
    decoded: list[int] = []
    decode = allocation_candidates.decode

    def counting(query_string: str, microversion: int) -> CandidatesRequest:
        decoded.append(microversion)
        return decode(query_string, microversion)

    monkeypatch.setattr(allocation_candidates, "decode", counting)
    api = asking("resources=VCPU:1")
    for version in ("1.39", "1.39", "1.38", "1.39"):
        answer = api.client.get(f"/allocation_candidates?{api.question}", version=version)
        assert answer.status == 200
    assert decoded == [39, 38]


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


def test_two_databases_of_one_process_share_no_names(tmp_path: Path) -> None:
    """The same ids have different names in two databases."""
    question = "/allocation_candidates?resources=VCPU:1"
    with (
        PlacementDirect(conf_at(tmp_path / "one.db"), latest_microversion=True) as one,
        PlacementDirect(conf_at(tmp_path / "two.db"), latest_microversion=True) as two,
    ):
        for client, name in ((one, "CUSTOM_ONE"), (two, "CUSTOM_TWO")):
            client.post("/resource_providers", json={"name": "host", "uuid": HOST})
            client.put(f"/traits/{name}")
            path = f"/resource_providers/{HOST}"
            stock = {"inventories": {"VCPU": {"total": 8}}, "resource_provider_generation": 0}
            client.put(f"{path}/inventories", json=stock)
            traits = {"traits": [name], "resource_provider_generation": 1}
            assert client.put(f"{path}/traits", json=traits).status_code == 200
        shown = [client.get(question).json() for client in (one, two, one)]
    assert [each["provider_summaries"][HOST]["traits"] for each in shown] == [
        ["CUSTOM_ONE"],
        ["CUSTOM_TWO"],
        ["CUSTOM_ONE"],
    ]


def conf_at(path: Path) -> cfg.ConfigOpts:
    """The configuration for a database file."""
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("connection", f"sqlite:///{path}", "placement_database")
    return conf
