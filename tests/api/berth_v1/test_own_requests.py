# SPDX-License-Identifier: Apache-2.0
"""What a consumer has asked for: kept, or inferred from what it holds (spec/beyond.md 5.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from tests.api import configured
from tests.api.berth_v1.test_place import PATH, consumer, error
from tests.client import Client
from tests.world_over_http import built_over_http, release_all
from tests.worlds import provider_uuid, world

FLEET: Final = world("""
    cn1       VCPU=8  MEMORY_MB=1024  @P
      cn1_g0  PGPU=1  CUSTOM_A100
      cn1_g1  PGPU=1  CUSTOM_A100
    cn2       VCPU=8  MEMORY_MB=1024  @P
      cn2_g0  PGPU=1  CUSTOM_A100
      cn2_g1  PGPU=1  CUSTOM_A100
    cn3       VCPU=8  MEMORY_MB=1024  @P
      cn3_g0  PGPU=1
      cn3_g1  PGPU=1
    pool1     DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @P
    pool2     DISK_GB=100  MISC_SHARES_VIA_AGGREGATE  @P
    other     VCPU=8
""")

GPUS: Final[dict[str, Any]] = {
    name: {"resources": {"PGPU": 1}, "required": ["CUSTOM_A100"]} for name in ("_GPU0", "_GPU1")
}
#: What is asked for, and what follows from the amounts alone.
FLAT: Final[dict[str, Any]] = {"groups": {"": {"resources": {"VCPU": 2, "MEMORY_MB": 64}}}}
GROUPS: Final[dict[str, Any]] = {"groups": GPUS}
SHARED: Final[dict[str, Any]] = {
    "groups": {"": {"resources": {"VCPU": 2, "DISK_GB": 10}}, "_GPU0": GPUS["_GPU0"]},
}
REQUESTS: Final[Mapping[str, Any]] = {"flat": FLAT, "groups": GROUPS, "shared": SHARED}
#: What each holds at some host, with the pool that stays.
HELD: Final[Mapping[str, Any]] = {
    "flat": {"cn{}": {"VCPU": 2, "MEMORY_MB": 64}},
    "groups": {"cn{}_g0": {"PGPU": 1}, "cn{}_g1": {"PGPU": 1}},
    "shared": {"cn{}": {"VCPU": 2}, "cn{}_g0": {"PGPU": 1}, "pool2": {"DISK_GB": 10}},
}
INFERRED: Final[Mapping[str, Any]] = {
    "flat": {"groups": {"_1": {"resources": {"VCPU": 2, "MEMORY_MB": 64}}}},
    "groups": {
        "groups": {"_1": {"resources": {"PGPU": 1}}, "_2": {"resources": {"PGPU": 1}}},
        "together": [{"groups": ["_1", "_2"], "at": "tree"}],
    },
    "shared": {
        "groups": {
            "_1": {"resources": {"VCPU": 2}},
            "_2": {"resources": {"PGPU": 1}},
            "_3": {"resources": {"DISK_GB": 10}, "in_tree": [provider_uuid("pool2")]},
        },
        "together": [{"groups": ["_1", "_2"], "at": "tree"}],
    },
}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        yield client


@pytest.fixture
def fleet(service: Client) -> Iterator[Client]:
    """The same; afterwards it has no flavors, and nothing is used."""
    yield service
    release_all(FLEET, service)
    for each in service.get("/berth/v1/flavors").json["flavors"]:
        assert service.delete(f"/berth/v1/flavors/{each['name']}").status == 204


def put_flavor(client: Client, name: str, request: Any) -> None:
    """Store a flavor."""
    path = f"/berth/v1/flavors/{name}"
    assert client.put(path, json={"request": request}).status in (200, 201)


def placed(client: Client, request: Any, host: str = "cn1") -> dict[str, Any]:
    """A new consumer of a request, on a host."""
    new = consumer()
    sent = {"request": request, "consumers": [new], "host": {"in": [host]}}
    answered = client.post(PATH, json=sent)
    assert answered.status == 200, answered.text
    return new


def moved_by_old_route(client: Client, uuid: str, held: Any, host: int) -> None:
    """What another program writes, which knows nothing of requests."""
    present = client.get(f"/allocations/{uuid}").json
    allocations = {
        provider_uuid(name.format(host)): {"resources": amounts} for name, amounts in held.items()
    }
    claim = {name: value for name, value in consumer(uuid).items() if name != "uuid"}
    generation = present["consumer_generation"]
    claim |= {"allocations": allocations, "consumer_generation": generation}
    assert client.put(f"/allocations/{uuid}", json=claim).status == 204


def shown(client: Client, uuid: str) -> dict[str, Any]:
    """Where a consumer is, and what it asked for."""
    answered = client.get(f"/berth/v1/placements/{uuid}")
    assert answered.status == 200, answered.text
    placement: dict[str, Any] = answered.json
    return placement


def replacing(client: Client, *uuids: str, **members: Any) -> dict[str, Any]:
    """A body that moves consumers, each with its own request."""
    generations = [shown(client, uuid)["consumer_generation"] for uuid in uuids]
    consumers = [
        consumer(uuid, consumer_generation=generation)
        for uuid, generation in zip(uuids, generations, strict=True)
    ]
    return {"consumers": consumers, "replace": True, **members}


def moved(client: Client, uuid: str, host: str) -> dict[str, Any]:
    """Move a consumer to a host; where it was, and where it is."""
    answered = client.post(PATH, json=replacing(client, uuid, host={"in": [host]}))
    assert answered.status == 200, answered.text
    answer: dict[str, Any] = answered.json
    return answer


def sums(client: Client, uuid: str) -> Counter[tuple[str, str]]:
    """What a consumer holds, of which tree or pool, whichever devices."""
    found: Counter[tuple[str, str]] = Counter()
    for provider, each in client.get(f"/allocations/{uuid}").json["allocations"].items():
        for name, amount in each["resources"].items():
            found[FLEET.names[provider].partition("_")[0], name] += amount
    return found


def of_classes(amounts: Mapping[tuple[str, str], int]) -> Counter[str]:
    """The amounts of each class, wherever they are."""
    found: Counter[str] = Counter()
    for (_, name), amount in amounts.items():
        found[name] += amount
    return found


def brought(client: Client, kind: str, life: str) -> str:
    """A consumer with a life behind it; now it is on cn2."""
    uuid: str = placed(client, REQUESTS[kind], "cn2" if life == "placed" else "cn1")["uuid"]
    if life in ("replaced", "by old routes and back"):
        moved(client, uuid, "cn2")
    if life == "by old routes":
        moved_by_old_route(client, uuid, HELD[kind], 2)
    if life == "by old routes and back":
        before = client.get(f"/allocations/{uuid}").json["allocations"]
        at_cn2 = {FLEET.names[each]: given["resources"] for each, given in before.items()}
        moved_by_old_route(client, uuid, HELD[kind], 3)
        moved_by_old_route(client, uuid, at_cn2, 2)
    return uuid


@pytest.mark.parametrize("flavors", [0, 1, 2])
@pytest.mark.parametrize(
    "life",
    ["placed", "replaced", "by old routes", "by old routes and back", "on cn3 by old routes"],
)
@pytest.mark.parametrize("kind", REQUESTS)
def test_the_basis_is_what_is_known(fleet: Client, kind: str, life: str, flavors: int) -> None:
    """A request that was kept, as long as the mapping counts; then the only flavor that can be it,
    if its traits are there; then the amounts. Each of them moves the consumer, and so does what it
    has afterwards; what a pool gives stays there where no more is known."""
    for number in range(flavors):
        put_flavor(fleet, f"f{number}", REQUESTS[kind])
    put_flavor(fleet, "none-of-them", {"groups": {"": {"resources": {"VCPU": 3}}}})
    if life == "on cn3 by old routes":
        uuid = placed(fleet, REQUESTS[kind])["uuid"]
        moved_by_old_route(fleet, uuid, HELD[kind], 3)
    else:
        uuid = brought(fleet, kind, life)
    found = shown(fleet, uuid)
    has_traits = kind == "flat" or life != "on cn3 by old routes"
    if "by old routes" not in life or life.endswith("back"):
        due = "placed", REQUESTS[kind]
    elif flavors == 1 and has_traits:
        due = "flavor", {"flavor": "f0"}
    else:
        due = "allocations", INFERRED[kind]
    assert (found["basis"], found["request"]) == due
    unknown = [{"code": "request_unknown", "at": ""}] if due[0] == "allocations" else []
    assert found["warnings"] == unknown
    before = "cn3" if life == "on cn3 by old routes" else "cn2"
    assert found["host"] == provider_uuid(before)
    assert found["providers"][provider_uuid(before)] == before
    served = {each for providers in found["mappings"].values() for each in providers}
    assert served == {*found["allocations"]}

    amounts = sums(fleet, uuid)
    answer = moved(fleet, uuid, "cn1")
    (placement,) = answer["placements"].values()
    assert (placement["from"], placement["host"]) == tuple(map(provider_uuid, (before, "cn1")))
    assert [each["code"] for each in answer["warnings"]] == ["request_unknown"][: len(unknown)]
    after = sums(fleet, uuid)
    assert of_classes(after) == of_classes(amounts)
    assert {place for place, _ in after if not place.startswith("pool")} == {"cn1"}
    if due[0] == "allocations":
        stayed = {key: n for key, n in amounts.items() if key[0].startswith("pool")}
        assert after.items() >= stayed.items()
    # What was inferred stays inferred: on cn1 there are the traits of the flavor.
    again = shown(fleet, uuid)["basis"]
    assert again == ("flavor" if due[0] != "placed" and flavors == 1 else due[0])


def test_conditions_of_one_move_are_not_kept(fleet: Client) -> None:
    """`host.in` takes the place of that of the request; others hold beside it."""
    request = {"groups": FLAT["groups"], "host": {"in": ["cn1"], "not_in": ["cn3"]}}
    uuid = placed(fleet, request)["uuid"]
    assert moved(fleet, uuid, "cn2")["placements"][uuid]["host"] == provider_uuid("cn2")
    assert shown(fleet, uuid)["request"] == request
    refused = fleet.post(PATH, json=replacing(fleet, uuid, host={"in": ["cn3"]}))
    assert error(refused)["code"] == "berth.place.does_not_fit"
    answer = fleet.post(PATH, json=replacing(fleet, uuid, host={"not_in": ["gone"]})).json
    assert answer["warnings"] == [
        {"code": "unknown_provider", "at": "/host/not_in/0", "reference": "gone"}
    ]
    # The request is asked again as it is: on cn1.
    assert answer["placements"][uuid]["host"] == provider_uuid("cn1")


def test_conditions_and_drains_of_a_call_count_for_new_consumers_too(fleet: Client) -> None:
    """Beside any request, such as a query or alternatives."""
    drain = "/berth/v1/drains/firmware"
    assert fleet.put(drain, json={"providers": ["cn2"]}).status == 201
    try:
        alternatives = {"alternatives": [GROUPS, {"query": "resources=VCPU:1"}]}
        sent: dict[str, Any] = {
            "request": alternatives,
            "consumers": [consumer()],
            "host": {"in": ["cn2"]},
        }
        assert error(fleet.post(PATH, json=sent))["code"] == "berth.place.does_not_fit"
        answered = fleet.post(PATH, json={**sent, "tolerate": ["firmware"]})
        (placement,) = answered.json["placements"].values()
        assert placement["host"] == provider_uuid("cn2")
        request = {**FLAT, "host": {"required": ["CUSTOM_A100"]}}
        forbidden = {"host": {"required": ["!CUSTOM_A100"]}}
        contradiction = {**sent, "request": request, **forbidden}
        refusal = error(fleet.post(PATH, json=contradiction), 400)
        assert refusal["pointer"] == "/host/required"
    finally:
        assert fleet.delete(drain).status == 204


def test_a_drained_host_keeps_its_flavors(fleet: Client) -> None:
    """Hosts are drained to be emptied: what their consumers asked for is known then, too."""
    put_flavor(fleet, "gpus", GROUPS)
    uuid = placed(fleet, GROUPS)["uuid"]
    moved_by_old_route(fleet, uuid, HELD["groups"], 2)
    drain = "/berth/v1/drains/firmware"
    assert fleet.put(drain, json={"providers": ["cn2"]}).status == 201
    try:
        assert shown(fleet, uuid)["basis"] == "flavor"
        answer = fleet.post(PATH, json=replacing(fleet, uuid)).json
        assert answer["placements"][uuid]["host"] == provider_uuid("cn1")
    finally:
        assert fleet.delete(drain).status == 204


def test_consumers_with_several_requests_move_together(fleet: Client) -> None:
    """All of them, or none; one does not take what another gets."""
    flat, first, second = (
        placed(fleet, request, host)["uuid"]
        for request, host in ((FLAT, "cn1"), (GROUPS, "cn1"), (GROUPS, "cn2"))
    )
    sent = replacing(fleet, flat, first, second, host={"not_in": ["cn3"]})
    answered = fleet.post(PATH, json=sent)
    assert answered.status == 200, answered.text
    placements = answered.json["placements"]
    assert [*placements] == [flat, first, second]
    assert {placements[each]["host"] for each in (first, second)} == {
        provider_uuid("cn1"),
        provider_uuid("cn2"),
    }
    assert [shown(fleet, each)["request"] for each in placements] == [FLAT, GROUPS, GROUPS]
    assert fleet.post(PATH, json=sent).json["repeated"]
    crowded = replacing(fleet, flat, first, second, host={"in": ["cn1"]})
    refusal = error(fleet.post(PATH, json=crowded))
    assert (refusal["code"], refusal["at_most"]) == ("berth.place.does_not_fit", 2)
    for limit in ({"max_per": {"host": 1}}, {"within": "host"}):
        refusal = error(fleet.post(PATH, json={**crowded, **limit}), 400)
        (member,) = limit
        assert refusal["pointer"] == f"/{member}"
    same = replacing(fleet, first, second, max_per={"host": 1})
    assert fleet.post(PATH, json=same).status == 200


def test_what_one_gets_is_not_there_for_the_next_request(fleet: Client) -> None:
    """Each of the two fits alone; no claim is tried that could not succeed."""
    large = {"groups": {"": {"resources": {"VCPU": 7}}}}
    uuids = [placed(fleet, large, "cn1")["uuid"], placed(fleet, FLAT, "cn2")["uuid"]]
    crowded = replacing(fleet, *uuids, host={"in": ["cn3"]})
    assert error(fleet.post(PATH, json=crowded))["code"] == "berth.place.undecided"
    answer = fleet.post(PATH, json={**crowded, "host": {"in": ["cn2", "cn3"]}}).json
    assert answer["tries"] == 1
    assert len({each["host"] for each in answer["placements"].values()}) == 2


def test_a_flavor_that_has_changed_is_not_what_was_asked_for(fleet: Client) -> None:
    """The consumer keeps what it has."""
    put_flavor(fleet, "small", FLAT)
    uuid = placed(fleet, {"flavor": "small"})["uuid"]
    found = shown(fleet, uuid)
    assert (found["basis"], found["request"]) == ("placed", {"flavor": "small"})
    put_flavor(fleet, "small", {"groups": {"": {"resources": {"VCPU": 4}}}})
    assert shown(fleet, uuid)["basis"] == "allocations"
    put_flavor(fleet, "as-before", FLAT)
    assert shown(fleet, uuid)["request"] == {"flavor": "as-before"}
    assert fleet.delete("/berth/v1/flavors/small").status == 204
    moved(fleet, uuid, "cn2")
    assert sums(fleet, uuid) == {("cn2", "VCPU"): 2, ("cn2", "MEMORY_MB"): 64}


def test_a_long_request_is_not_kept(fleet: Client) -> None:
    """Its consumer is placed all the same, and its mappings are kept."""
    excluded = [f"gone-{number:04}" for number in range(1500)]
    uuid = placed(fleet, {**FLAT, "host": {"not_in": excluded}})["uuid"]
    found = shown(fleet, uuid)
    assert (found["basis"], found["mappings"]) == ("allocations", {"": [provider_uuid("cn1")]})


def test_what_has_no_request_is_refused(fleet: Client) -> None:
    """A new consumer has none, nor has one that holds nothing or from too many providers."""
    refusal = error(fleet.post(PATH, json={"consumers": [consumer()]}), 400)
    assert "lacks request" in refusal["detail"]
    uuid = placed(fleet, FLAT)["uuid"]
    sent = replacing(fleet, uuid)
    assert fleet.delete(f"/allocations/{uuid}").status == 204
    assert error(fleet.get(f"/berth/v1/placements/{uuid}"), 404)["code"] == "berth.not_found"
    assert error(fleet.post(PATH, json=sent))["code"] == "placement.concurrent_update"


def test_who_holds_from_too_many_providers_needs_a_request(fleet: Client) -> None:
    """There would be more groups than a request may have."""
    devices = [f"big_{number}" for number in range(65)]
    big = world("\n".join(["big  VCPU=1", *(f"  {name}  PGPU=1" for name in devices)]))
    with built_over_http(big, fleet):
        uuid = placed(fleet, FLAT)["uuid"]
        moved_by_old_route(fleet, uuid, {name: {"PGPU": 1} for name in devices}, 1)
        assert len(shown(fleet, uuid)["request"]["groups"]) == 65
        refusal = error(fleet.post(PATH, json=replacing(fleet, uuid)), 400)
        assert refusal["pointer"] == "/consumers/0"
        assert refusal["code"] == "berth.request.too_large"
        assert fleet.delete(f"/allocations/{uuid}").status == 204


def test_one_that_shares_with_others_takes_its_own_part_along(fleet: Client) -> None:
    """What a host gives itself moves with the rest, even if it also gives it to others."""
    sharing = world("""
        h1      VCPU=8  @Q
          h1_d  DISK_GB=10  MISC_SHARES_VIA_AGGREGATE  @Q
        h2      VCPU=8
          h2_d  DISK_GB=10
    """)
    with built_over_http(sharing, fleet):
        new = consumer()
        request = {"groups": {"": {"resources": {"VCPU": 1, "DISK_GB": 1}}}}
        sent = {"request": request, "consumers": [new], "host": {"in": ["h1"]}}
        assert fleet.post(PATH, json=sent).status == 200
        held = {"h1": {"VCPU": 2}, "h1_d": {"DISK_GB": 1}}
        moved_by_old_route(fleet, new["uuid"], held, 1)
        assert shown(fleet, new["uuid"])["basis"] == "allocations"
        answer = moved(fleet, new["uuid"], "h2")
        (placement,) = answer["placements"].values()
        assert {*placement["allocations"]} == {provider_uuid("h2"), provider_uuid("h2_d")}
        assert fleet.delete(f"/allocations/{new['uuid']}").status == 204
