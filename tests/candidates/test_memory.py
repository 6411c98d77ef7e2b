# SPDX-License-Identifier: Apache-2.0
"""What a worker remembers between requests ends with what it depends on.

Each test asks the same text before and after a change. An engine may give the id of something that
was deleted to the next that is made: SQLite does, and these tests rely on it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg

from berth.config import options
from berth.direct import PlacementDirect
from berth.index import Index
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
    """The requests that these tests send, all of which must succeed; and one question."""

    def __init__(self, client: Client, question: str) -> None:
        self.client = client
        self.question = question

    def ask(self) -> Any:
        """The answer to the question, which is the same text each time."""
        answer = self.client.get(f"/allocation_candidates?{self.question}")
        assert answer.status == 200, answer.text
        return answer.json

    def summary(self, uuid: str = HOST) -> Any:
        """How the answer describes one provider."""
        return self.ask()["provider_summaries"][uuid]

    def status(self) -> int:
        """The status of the answer, whatever it is."""
        return self.client.get(f"/allocation_candidates?{self.question}").status

    def hosts(self) -> set[str]:
        """The names of the roots that the answer describes, of those made by `host`."""
        named = {provider_uuid(name): name for name in ("host", "other")}
        return {named[uuid] for uuid in self.ask()["provider_summaries"]}

    def send(self, method: str, path: str, **body: Any) -> None:
        """Write something."""
        answer = self.client.request(method, path, json=body or NOTHING)
        assert answer.status in (200, 201, 204), answer.text

    def put(self, what: str, value: Any, *, uuid: str = HOST) -> None:
        """Replace the traits, inventories or aggregates of a provider."""
        generation = self.client.get(f"/resource_providers/{uuid}").json["generation"]
        changed = {what: value, "resource_provider_generation": generation}
        self.send("PUT", f"/resource_providers/{uuid}/{what}", **changed)

    def host(self, name: str, **inventories: int) -> None:
        """Make a provider that has so much of some classes."""
        self.send("POST", "/resource_providers", name=name, uuid=provider_uuid(name))
        totals = {each: {"total": total} for each, total in inventories.items()}
        self.put("inventories", totals, uuid=provider_uuid(name))


Asking = Callable[[str], Api]


@pytest.fixture
def asking(client: Client) -> Asking:
    """What asks the test's application a question; there is one host, of 8 VCPU."""

    def about(question: str) -> Api:
        api = Api(client, question)
        api.host("host", VCPU=8)
        return api

    return about


@ASKED_BETWEEN
def test_a_trait_that_comes_in_place_of_another_has_its_own_name(
    asking: Asking, asked_between: bool
) -> None:
    """Its id was the other's, and its host looks as before."""
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
    """Its id was the other's, and its host looks as before."""
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
    """In the summaries, in what is allocated, and in what can be asked for; the trees are not
    loaded again for it."""
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
    ("what", "question"),
    [
        ("traits", "resources=VCPU:1&required=CUSTOM_IT"),
        ("traits", "resources=VCPU:1&root_required=!CUSTOM_IT"),
        ("resource_classes", "resources=CUSTOM_IT:1"),
    ],
)
def test_a_name_that_is_gone_is_unknown(asking: Asking, what: str, question: str) -> None:
    """Even to those who asked for it while it was there, and until it is made again."""
    api = asking(question)
    api.send("PUT", f"/{what}/CUSTOM_IT")
    assert api.status() == 200
    api.send("DELETE", f"/{what}/CUSTOM_IT")
    assert api.status() == 400
    api.send("PUT", f"/{what}/CUSTOM_IT")
    assert api.status() == 200


def test_a_trait_made_again_is_another(asking: Asking) -> None:
    """Whoever has what took its id meanwhile is not meant."""
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
    """Whoever has what took its id meanwhile is not meant."""
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
    """By those too who asked when nobody was in it, or others were; in a set of aggregates too that
    nobody was in before."""
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
    """As the pool that was there before did, and beside it; asked for between all steps."""
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
    """A request that a reader of the past has asked first finds what is there now."""
    build_in_store(world("host VCPU=8"), database)
    index = Index(database)
    before = index.snapshot()
    in_it = [AggregateUUID(aggregate_uuid("A"))]
    replace_aggregates(database, ProviderUUID(HOST), in_it, UNSET)
    now = index.snapshot()
    request = request_of(parse_query("resources=VCPU:1&member_of=<agg:A>", 39))
    found = [HOST.encode() in ask_with(each, request, form_at(39)) for each in (before, now) * 2]
    assert found == [False, True] * 2


def test_a_tree_that_was_named_is_found_where_it_stands_now(asking: Asking) -> None:
    """When a host goes, another takes its row."""
    api = asking(f"resources=VCPU:1&in_tree={provider_uuid('other')}")
    api.host("other", VCPU=8)
    assert api.hosts() == {"other"}
    api.send("DELETE", f"/resource_providers/{HOST}")
    assert api.hosts() == {"other"}
    api.send("DELETE", f"/resource_providers/{provider_uuid('other')}")
    assert api.hosts() == set()


def test_one_request_has_an_answer_of_its_own_in_each_form(prepared: Path) -> None:
    """What was found out for one microversion is not taken for what another asks."""
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


def test_a_summary_follows_its_inventory(asking: Asking) -> None:
    """What there is of a class, and what is used of it, are those of now."""
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
    """A tree that gets a child, and loses it, is described with it and without."""
    api, child = asking("resources=VCPU:1"), provider_uuid("child")
    below = {"name": "child", "uuid": child, "parent_provider_uuid": HOST}
    assert api.ask()["provider_summaries"].keys() == {HOST}
    api.send("POST", "/resource_providers", **below)
    assert api.summary(child)["root_provider_uuid"] == HOST
    api.send("DELETE", f"/resource_providers/{child}")
    assert api.ask()["provider_summaries"].keys() == {HOST}


def test_two_databases_of_one_process_share_no_names(tmp_path: Path) -> None:
    """The same ids are called otherwise in each."""
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
    """The configuration of a database file."""
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    conf([], default_config_files=[], default_config_dirs=[])
    conf.set_override("connection", f"sqlite:///{path}", "placement_database")
    return conf
