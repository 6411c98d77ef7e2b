# SPDX-License-Identifier: Apache-2.0
"""`POST /berth/v1/place` and `GET /berth/v1/placements/{consumer}` over HTTP (spec/beyond.md 5)."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Semaphore
from typing import Any, Final

import pytest
from msgspec.structs import replace

from berth.api.berth_v1.place_choosing import Choosing
from berth.edge.admission import Line
from berth.model.errors import CapacityExceeded, DatabaseUnavailable
from berth.model.ids import ConsumerUUID, ProviderUUID
from berth.store import allocations as store
from tests.api import configured
from tests.api.worlds import new_uuid
from tests.client import Client, Response
from tests.store.together import in_background
from tests.world_over_http import built_over_http, release_all
from tests.worlds import aggregate_uuid, provider_uuid, world

PATH: Final = "/berth/v1/place"

FLEET: Final = world("""
    cn1      VCPU=4  MEMORY_MB=1024  @r1
    cn2      VCPU=4  MEMORY_MB=1024  @r1  CUSTOM_GREEN
    cn3      VCPU=2  MEMORY_MB=1024  @r2
    cn4      VCPU=2  MEMORY_MB=1024
""")
#: Racks r1 and r2; cn4 is in none.
RACKS: Final = {"r1": "r1", "r2": "r2"}
VCPU: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 1}}}}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        for name, rack in RACKS.items():
            path = f"/berth/v1/aggregates/{aggregate_uuid(name)}"
            assert client.put(path, json={"labels": {"rack": rack}}).status == 200
        yield client


@pytest.fixture
def fleet(service: Client) -> Iterator[Client]:
    """The same, with nothing used afterwards."""
    yield service
    release_all(FLEET, service)


def consumer(uuid: str | None = None, **members: Any) -> dict[str, Any]:
    """A consumer of a body, new unless a uuid is given."""
    owners = {"project_id": "web", "user_id": "alice", "consumer_type": "INSTANCE"}
    return {"uuid": uuid or new_uuid(), **owners, **members}


def body(count: int = 1, request: Any = VCPU, **members: Any) -> dict[str, Any]:
    """A body that places new consumers."""
    return {"request": request, "consumers": [consumer() for _ in range(count)], **members}


def place(client: Client, sent: Any, query: str = "") -> dict[str, Any]:
    """The answer to a call, which is no error."""
    answered = client.post(f"{PATH}{query}", json=sent)
    assert answered.status == 200, answered.text
    answer: dict[str, Any] = answered.json
    return answer


def error(response: Response, status: int = 409) -> dict[str, Any]:
    """The only error of a refusal."""
    assert response.status == status, response.text
    (found,) = response.json["errors"]
    shown: dict[str, Any] = found
    return shown


def hosts(answer: dict[str, Any]) -> list[str]:
    """The names of the hosts, in the order of the consumers."""
    return [FLEET.names[each["host"]] for each in answer["placements"].values()]


def held(client: Client, uuid: str) -> Any:
    """What a consumer holds, by name of the provider."""
    shown = client.get(f"/allocations/{uuid}").json["allocations"]
    return {FLEET.names[provider]: each["resources"] for provider, each in shown.items()}


def test_a_consumer_is_placed(fleet: Client) -> None:
    """On the emptiest host, and it holds what the answer says."""
    sent = body(request={"groups": {"": {"resources": {"VCPU": 3}}}, "host": {"not_in": ["cn1"]}})
    (uuid,) = [each["uuid"] for each in sent["consumers"]]
    answer = place(fleet, sent)
    assert answer.pop("revision").startswith("b1.")
    cn2 = provider_uuid("cn2")
    placement = {
        "host": cn2,
        "allocations": {cn2: {"resources": {"VCPU": 3}}},
        "mappings": {"": [cn2]},
        "consumer_generation": 1,
    }
    score = {"total": 0.25, "spread": 0.25, "prefer": []}
    assert answer == {
        "repeated": False,
        "tries": 1,
        "placements": {uuid: {**placement, "score": score}},
        "warnings": [],
        "providers": {cn2: "cn2"},
    }
    assert held(fleet, uuid) == {"cn2": {"VCPU": 3}}
    shown = fleet.get(f"/allocations/{uuid}").json
    assert (shown["project_id"], shown["user_id"]) == ("web", "alice")
    assert (shown["consumer_type"], shown["consumer_generation"]) == ("INSTANCE", 1)
    kept = {"request": sent["request"], "basis": "placed", "warnings": []}
    shown = fleet.get(f"/berth/v1/placements/{uuid}").json
    assert shown == {**placement, **kept, "providers": {cn2: "cn2"}}


def test_the_same_call_again_answers_the_same_and_writes_nothing(fleet: Client) -> None:
    """Even where nothing fits any more, in whatever order its members stand, and whatever `explain`
    says."""
    sent = body(request={"groups": {"": {"resources": {"VCPU": 4}}}, "host": {"in": ["cn1"]}})
    first = place(fleet, sent)
    turned = dict(reversed(sent.items()), request=dict(reversed(sent["request"].items())))
    again = place(fleet, {**turned, "explain": False})
    assert (again["repeated"], again["tries"]) == (True, 0)
    for placement in first["placements"].values():
        del placement["score"]
    assert again["placements"] == first["placements"]
    assert [*again] == [*first]
    for shown, repeated in zip(
        first["placements"].values(), again["placements"].values(), strict=True
    ):
        assert [*shown] == [*repeated]
    dry = place(fleet, sent, "?dry_run=true")
    assert (dry["repeated"], dry["placements"]) == (True, again["placements"])


def test_another_body_for_a_consumer_that_holds_something_is_refused(fleet: Client) -> None:
    """It names the consumers, and nothing is written for the others. A call with one try can be
    repeated: that its consumer exists is no lost race. So it is not for some of its consumers, and
    the placement of one that was released counts for nothing."""
    sent = body(2, tries=1)
    gone, kept = place(fleet, sent)["placements"]
    assert place(fleet, sent)["repeated"]
    new = consumer()
    old = sent["consumers"][1]
    for path, refused, due in (
        (PATH, {**sent, "consumers": [new, old]}, [kept]),
        (f"{PATH}?dry_run=true", {**sent, "tries": 2}, [gone, kept]),
    ):
        refusal = error(fleet.post(path, json=refused))
        assert (refusal["code"], refusal["consumers"]) == ("berth.consumer.holds", due)
    assert held(fleet, new["uuid"]) == {}
    assert fleet.delete(f"/allocations/{gone}").status == 204
    assert error(fleet.get(f"/berth/v1/placements/{gone}"), 404)["code"] == "berth.not_found"
    refusal = error(fleet.post(PATH, json=sent))
    assert (refusal["code"], refusal["consumers"]) == ("berth.consumer.holds", [kept])
    assert held(fleet, gone) == {}
    assert fleet.delete(f"/allocations/{kept}").status == 204
    assert not place(fleet, sent)["repeated"]
    for uuid in (new_uuid(), "job-17"):
        assert error(fleet.get(f"/berth/v1/placements/{uuid}"), 404)["code"] == "berth.not_found"


def test_a_placement_ends_when_the_consumer_changes(fleet: Client) -> None:
    """And counts again when it holds exactly the same again."""
    sent = body(request={**VCPU, "host": {"in": ["cn1"]}})
    (uuid,) = [each["uuid"] for each in sent["consumers"]]
    place(fleet, sent)
    for amount, basis, generation in ((2, "allocations", 1), (1, "placed", 2)):
        claim = {
            "allocations": {provider_uuid("cn1"): {"resources": {"VCPU": amount}}},
            "project_id": "web",
            "user_id": "alice",
            "consumer_generation": generation,
            "consumer_type": "INSTANCE",
        }
        assert fleet.put(f"/allocations/{uuid}", json=claim).status == 204
        assert fleet.get(f"/berth/v1/placements/{uuid}").json["basis"] == basis
    assert place(fleet, sent)["repeated"]


def test_nothing_fits(fleet: Client) -> None:
    """It is proven, explained, and nothing is written."""
    sent = body(request={"groups": {"": {"resources": {"VCPU": 5}}}})
    response = fleet.post(PATH, json=sent)
    refusal = error(response)
    assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 0)
    assert response.json["explanation"]["verdict"] == "never"
    quiet = fleet.post(PATH, json={**sent, "explain": False})
    assert error(quiet)["code"] == "berth.place.does_not_fit"
    assert "explanation" not in quiet.json


def test_many_are_placed_together(fleet: Client) -> None:
    """One after another, each on the emptiest host that is left."""
    answer = place(fleet, body(4, order={"by": "spread"}))
    assert set(hosts(answer)[:2]) == {"cn1", "cn2"}
    totals = [each["score"]["total"] for each in answer["placements"].values()]
    assert totals == [0.75, 0.75, 0.5, 0.5]
    assert all(held(fleet, uuid) for uuid in answer["placements"])


def test_all_or_none_are_placed(fleet: Client) -> None:
    """The answer says how many could be."""
    sent = body(13)
    refusal = error(fleet.post(PATH, json=sent))
    assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 12)
    assert not any(held(fleet, each["uuid"]) for each in sent["consumers"])
    assert len(place(fleet, body(12))["placements"]) == 12


@pytest.mark.parametrize(
    ("limits", "at_most"),
    [
        ({"max_per": {"host": 1}}, 4),
        ({"max_per": {"host": 2, "rack": 3}}, 7),
        ({"max_per": {"rack": 1}}, 3),
        ({"within": "rack"}, 8),
        ({"within": "rack", "max_per": {"host": 2}}, 4),
        ({"within": "host"}, 4),
    ],
)
def test_limits_hold(fleet: Client, limits: dict[str, Any], at_most: int) -> None:
    """As many as they allow are placed, and one more is refused."""
    racks = {"cn1": "r1", "cn2": "r1", "cn3": "r2", "cn4": "cn4"}
    refusal = error(fleet.post(PATH, json=body(at_most + 1, **limits)))
    assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", at_most)
    placed = hosts(place(fleet, body(at_most, **limits)))
    of_key = {"host": Counter(placed), "rack": Counter(racks[each] for each in placed)}
    for key, most in limits.get("max_per", {}).items():
        assert max(of_key[key].values()) <= most
    if key := limits.get("within"):
        assert len(of_key[key]) == 1


def test_limits_of_labels_that_cross_hold(tmp_path: Path) -> None:
    """The first rack has a host in each of two zones: one consumer of each zone can be in it."""
    drawn = world("cn1  VCPU=1  @a\ncn2  VCPU=1  @b\ncn3  VCPU=1  @c\ncn4  VCPU=1  @d")
    labels = {"a": ("r1", "z1"), "b": ("r1", "z2"), "c": ("r2", "z1"), "d": ("r3", "z1")}
    limits = {"max_per": {"rack": 2, "zone": 1}}
    client = configured.serve(tmp_path)
    with built_over_http(drawn, client):
        for name, (rack, zone) in labels.items():
            path = f"/berth/v1/aggregates/{aggregate_uuid(name)}"
            assert client.put(path, json={"labels": {"rack": rack, "zone": zone}}).status == 200
        assert len(place(client, body(2, **limits), "?dry_run=true")["placements"]) == 2
        refusal = error(client.post(PATH, json=body(3, **limits)))
        assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 2)


def test_a_consumer_is_moved(fleet: Client) -> None:
    """What it holds counts as free, and is given back in the same transaction."""
    big = {"groups": {"": {"resources": {"VCPU": 3}}}}
    sent = body(request={**big, "host": {"in": ["cn1"]}})
    (uuid,) = [each["uuid"] for each in sent["consumers"]]
    place(fleet, sent)
    bigger = {
        "request": {"groups": {"": {"resources": {"VCPU": 4}}}, "host": {"in": ["cn1"]}},
        "consumers": [consumer(uuid, consumer_generation=1)],
        "replace": True,
    }
    answer = place(fleet, bigger)
    assert answer["placements"][uuid]["consumer_generation"] == 2
    assert held(fleet, uuid) == {"cn1": {"VCPU": 4}}
    assert place(fleet, bigger)["repeated"]
    refusal = error(fleet.post(PATH, json={**bigger, "tries": 1}))
    assert refusal["code"] == "placement.concurrent_update"
    away = {**bigger, "request": {**big, "host": {"not_in": ["cn1"]}}}
    away["consumers"] = [consumer(uuid, consumer_generation=2)]
    assert hosts(place(fleet, away)) == ["cn2"]
    assert held(fleet, uuid) == {"cn2": {"VCPU": 3}}


def test_a_dry_run_answers_the_same_and_writes_nothing(fleet: Client) -> None:
    """With the same seed; it may assume something, which a call may not (test_refused.py)."""
    sent = body(3, order={"by": "spread", "seed": 7}, max_per={"host": 1})
    dry = place(fleet, sent, "?dry_run=true")
    assert not any(held(fleet, each["uuid"]) for each in sent["consumers"])
    assert place(fleet, sent, "?dry_run=false") == dry
    assert all(held(fleet, each["uuid"]) for each in sent["consumers"])
    sent = body(5, max_per={"host": 1}, what_if={"add_hosts": [{"like": "cn1", "count": 1}]})
    answer = place(fleet, sent, "?dry_run=true")
    assert len({each["host"] for each in answer["placements"].values()}) == 5


def test_the_first_alternative_that_has_places_counts(fleet: Client) -> None:
    """The answer says which."""
    green = {**VCPU, "host": {"required": ["CUSTOM_GREEN"]}}
    several = {"alternatives": [green, VCPU]}
    assert place(fleet, body(2, several))["alternative"] == 0
    assert place(fleet, body(4, several))["alternative"] == 1


def test_hosts_whose_drain_is_tolerated_count(fleet: Client) -> None:
    """Also in what is proven, where a choice alone proves nothing: amounts that may be split."""
    split = {"resources": {"VCPU": 3}, "split": {"VCPU": {"parts": 2}}}
    request: dict[str, Any] = {"groups": {"": split}, "tolerate": ["firmware"]}
    drain = "/berth/v1/drains/firmware"
    assert fleet.put(drain, json={"providers": list(FLEET.by_name)}).status == 201
    try:
        refusal = error(fleet.post(PATH, json=body(5, request)))
        assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 2)
        assert set(hosts(place(fleet, body(2, request)))) == {"cn1", "cn2"}
        del request["tolerate"]
        refusal = error(fleet.post(PATH, json=body(1, request)))
        assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 0)
    finally:
        assert fleet.delete(drain).status == 204


UNKNOWN_HOST: Final = {"code": "unknown_provider", "at": "/request/host/not_in/0", "reference": "x"}


@pytest.mark.parametrize(
    ("sent", "warnings"),
    [
        # A provider that is excluded may have gone; a host that is misspelt reads as a full one.
        (body(request={**VCPU, "host": {"not_in": ["x"]}}), [UNKNOWN_HOST]),
        (
            body(request={**VCPU, "host": {"in": ["cn11"]}}),
            [{"code": "unknown_provider", "at": "/request/host/in/0", "reference": "cn11"}],
        ),
        # Each host is alone in its group then, which is hardly what the caller meant.
        (
            body(2, within="racks"),
            [{"code": "unknown_label", "at": "/within", "reference": "racks"}],
        ),
        (
            body(2, within="racks", max_per={"rak": 1, "rack": 2, "host": 2}),
            [
                {"code": "unknown_label", "at": "/max_per/rak", "reference": "rak"},
                {"code": "unknown_label", "at": "/within", "reference": "racks"},
            ],
        ),
        (body(2, within="rack", max_per={"host": 1}), []),
    ],
)
def test_warnings_name_what_does_not_exist(fleet: Client, sent: Any, warnings: Any) -> None:
    """With an answer, and with a refusal."""
    answered = fleet.post(PATH, json={**sent, "explain": False})
    assert answered.status == 200 or error(answered)["code"] == "berth.place.does_not_fit"
    assert answered.json["warnings"] == warnings


def test_a_refusal_names_the_limits_in_effect(fleet: Client) -> None:
    """Hosts fit, so only these are the reason."""
    for count, limits, said in (
        (4, {"max_per": {"rack": 1}}, "At most 3 of the 4 consumers fit with max_per rack=1."),
        (
            9,
            {"max_per": {"host": 5}, "within": "rack"},
            "At most 8 of the 9 consumers fit with max_per host=5 and within rack.",
        ),
    ):
        assert said in error(fleet.post(PATH, json=body(count, **limits)))["detail"]


# --- Races, staged


def blocked(monkeypatch: pytest.MonkeyPatch) -> tuple[threading.Event, threading.Event]:
    """Hold up the next claim: events that it has come, and that it may go on."""
    come, may_go = threading.Event(), threading.Event()
    claim = store.replace_allocations

    def held_up(*arguments: Any, **options: Any) -> None:
        if not come.is_set():
            come.set()
            assert may_go.wait(30)
        claim(*arguments, **options)

    monkeypatch.setattr(store, "replace_allocations", held_up)
    return come, may_go


def test_what_is_being_claimed_counts_as_used(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two that want the last hole of the best host do not fight for it."""
    request = {"groups": {"": {"resources": {"VCPU": 3}}}}
    sent = [body(request=request, order={"by": "pack", "seed": 1}) for _ in range(2)]
    come, may_go = blocked(monkeypatch)
    first = in_background(place, fleet, sent[0])
    assert come.wait(30)
    second = place(fleet, sent[1])
    may_go.set()
    assert sorted(hosts(first.result(30)) + hosts(second)) == ["cn1", "cn2"]
    assert (first.result()["tries"], second["tries"]) == (1, 1)


def test_where_only_what_is_being_claimed_is_left_it_is_tried(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other claim may fail; if it does not, the refusal comes from a newer state."""
    request = {"groups": {"": {"resources": {"VCPU": 3}}}, "host": {"in": ["cn1"]}}
    come, may_go = blocked(monkeypatch)
    first = in_background(partial(fleet.post, PATH, json=body(request=request)))
    assert come.wait(30)
    second = place(fleet, body(request=request))
    may_go.set()
    refusal = error(first.result(30))
    assert hosts(second) == ["cn1"]
    assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 0)


def test_after_so_many_lost_races_a_call_gives_up(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client may send it again, and nothing was written."""
    calls = Counter[str]()

    def lost(*arguments: Any, **options: Any) -> None:
        calls["claims"] += 1
        raise CapacityExceeded(ProviderUUID("p"), "VCPU", asked=1, free=0)

    sent = body(tries=3)
    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_allocations", lost)
        assert error(fleet.post(PATH, json=sent))["code"] == "berth.place.lost_races"
    assert calls["claims"] == 3
    assert not place(fleet, sent)["repeated"]


def test_a_lost_race_is_followed_by_another_choice(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fresh state of the fleet, in which the other claim is used."""
    request = {"groups": {"": {"resources": {"VCPU": 4}}}}
    claim = store.replace_allocations
    rivals = [provider_uuid(name) for name in ("cn1", "cn2")]

    def outrun(db: Any, writes: Any, **options: Any) -> None:
        (chosen,) = writes[0].allocations
        if len(rivals) == 2:
            rivals.remove(chosen)
            rival = replace(writes[0], uuid=ConsumerUUID(new_uuid()))
            claim(db, [rival], attempts=1)
        claim(db, writes, **options)

    monkeypatch.setattr(store, "replace_allocations", outrun)
    answer = place(fleet, body(request=request))
    assert answer["tries"] == 2
    assert [each["host"] for each in answer["placements"].values()] == rivals


def test_a_host_that_loses_its_inventory_is_a_lost_race(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another one is chosen, as for any change of the fleet between choice and claim."""
    claim, changed = store.replace_allocations, list[str]()

    def outrun(db: Any, writes: Any, **options: Any) -> None:
        if not changed:
            changed.extend(writes[0].allocations)
            path = f"/resource_providers/{changed[0]}/inventories/VCPU"
            assert fleet.delete(path).status == 204
        claim(db, writes, **options)

    monkeypatch.setattr(store, "replace_allocations", outrun)
    try:
        answer = place(fleet, body(request={"groups": {"": {"resources": {"VCPU": 4}}}}))
    finally:
        path = f"/resource_providers/{changed[0]}/inventories"
        again = {"resource_class": "VCPU", "total": 4}
        assert fleet.post(path, json=again).status == 201
    assert answer["tries"] == 2
    assert sorted([FLEET.names[changed[0]], *hosts(answer)]) == ["cn1", "cn2"]


@pytest.mark.parametrize(
    ("members", "code"),
    [
        ({"max_per": {"rak": 1}}, "unknown_label"),
        ({"host": {"not_in": ["cn9"]}}, "unknown_provider"),
        ({"tolerate": ["firmwares"]}, "unknown_drain"),
    ],
)
def test_a_warning_is_not_lost_where_calls_share_a_search(
    fleet: Client, monkeypatch: pytest.MonkeyPatch, members: dict[str, Any], code: str
) -> None:
    """Those that ask the same at once choose from one pool; their limits may differ, and a call
    with conditions of its own chooses for itself."""
    order = {"by": "pack"}
    come, may_go = Semaphore(0), threading.Event()
    claim = store.replace_allocations

    def held_up(*arguments: Any, **options: Any) -> None:
        come.release()
        assert may_go.wait(30)
        claim(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_allocations", held_up)
        others = []
        for _ in range(2):
            # The second one leaves its pool, because the first is under way.
            others.append(in_background(place, fleet, body(order=order)))
            assert come.acquire(timeout=30)
    answer = place(fleet, body(order=order, **members))
    may_go.set()
    assert [each.result(30)["warnings"] for each in others] == [[], []]
    assert [each["code"] for each in answer["warnings"]] == [code]


def test_a_call_whose_time_ends_can_be_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is 503 with `Retry-After`: that other requests were faster until then is no refusal."""
    client = configured.serve(tmp_path)

    def lost_late(*arguments: Any, **options: Any) -> None:
        monkeypatch.setattr(Choosing, "is_late", True)
        raise CapacityExceeded(ProviderUUID("p"), "VCPU", asked=1, free=0)

    sent = body()
    with built_over_http(FLEET, client):
        with monkeypatch.context() as patched:
            patched.setattr(store, "replace_allocations", lost_late)
            answered = client.post(PATH, json=sent)
        assert error(answered, 503)["code"] == "berth.search.gave_up"
        assert answered.headers["retry-after"] == "1"
        monkeypatch.undo()
        (placed,) = place(client, sent)["placements"]
        assert client.delete(f"/allocations/{placed}").status == 204


def test_a_call_without_a_place_for_its_search_can_be_sent_again(
    fleet: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """503 with `Retry-After`, and nothing was written."""
    sent = body()
    enter, entered = Line.enter, list[Line]()

    def only_the_request(line: Line, *within: object) -> bool:
        entered.append(line)
        return len(entered) == 1 and enter(line)

    with monkeypatch.context() as patched:
        patched.setattr(Line, "enter", only_the_request)
        answered = fleet.post(PATH, json=sent)
    assert error(answered, 503)["code"] == "placement.overloaded"
    assert len(entered) == 2, "the search came to no place, not the request"
    assert answered.headers["retry-after"]
    assert not place(fleet, sent)["repeated"]


def test_a_lost_answer_is_asked_for_again(fleet: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim was committed, and the service could not say so: 503. The same call finds out."""
    claim = store.replace_allocations

    def unanswered(*arguments: Any, **options: Any) -> None:
        claim(*arguments, **options)
        raise DatabaseUnavailable("the answer was lost")

    sent = body(2, tries=1)
    with monkeypatch.context() as patched:
        patched.setattr(store, "replace_allocations", unanswered)
        assert fleet.post(PATH, json=sent).status == 503
    answer = place(fleet, sent)
    assert answer["repeated"]
    for uuid, placement in answer["placements"].items():
        assert held(fleet, uuid) == {FLEET.names[placement["host"]]: {"VCPU": 1}}
