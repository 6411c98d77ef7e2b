# SPDX-License-Identifier: Apache-2.0
"""The response of `GET /allocation_candidates` at every microversion.

Source: allocation-candidates.md sections 1, 5.6, 6 and 7.
"""

from typing import Any

import pytest

from tests.api.claims import claim_body, consumer, used
from tests.api.versions import at_least, versions
from tests.api.worlds import custom_class, custom_trait, new_uuid, provider
from tests.client import Client, Response


class World:
    """A host with a pool that its aggregate shares, and a child that nobody asks for.

    host     CPU=4(used:1)  RAM=16  TRAIT  @A
      numa   PORT=2
    pool     DISK=100(reserved:10,allocation_ratio:1.5)  MISC_SHARES_VIA_AGGREGATE  @A
    """

    def __init__(self, api: Client) -> None:
        self.api = api
        self.cpu, self.ram, self.disk, self.port = (custom_class(api) for _ in range(4))
        self.trait, aggregate = custom_trait(api), new_uuid()
        self.host = provider(
            api, {self.cpu: 4, self.ram: 16}, traits=[self.trait], aggregates=[aggregate]
        )
        self.numa = provider(api, {self.port: 2}, parent=self.host)
        self.pool = provider(
            api,
            {self.disk: {"total": 100, "reserved": 10, "allocation_ratio": 1.5}},
            traits=["MISC_SHARES_VIA_AGGREGATE"],
            aggregates=[aggregate],
        )
        consumer(api, {self.host: {self.cpu: 1}})

    def ask(self, query: str, version: str) -> Response:
        """Send a query in which CPU, RAM, DISK and PORT stand for this world's classes."""
        for word, name in (
            ("CPU", self.cpu),
            ("RAM", self.ram),
            ("DISK", self.disk),
            ("PORT", self.port),
        ):
            query = query.replace(word, name)
        return self.api.get(f"/allocation_candidates?{query}", version=version)


@pytest.fixture(scope="module")
def world(api: Client) -> World:
    """The world of this module; no test changes it."""
    return World(api)


@pytest.mark.parametrize("version", versions("1.10"))
def test_a_candidate_has_the_form_of_its_microversion(world: World, version: str) -> None:
    """A list up to 1.11, then an object by provider; mappings from 1.34; no other keys."""
    answer = world.ask("resources=CPU:2,DISK:50", version)

    assert answer.status == 200
    (candidate,) = answer.json["allocation_requests"]
    claims = {world.host: {world.cpu: 2}, world.pool: {world.disk: 50}}
    if at_least(version, "1.12"):
        assert candidate["allocations"] == {
            uuid: {"resources": resources} for uuid, resources in claims.items()
        }
    else:
        listed = {
            item["resource_provider"]["uuid"]: item["resources"]
            for item in candidate["allocations"]
        }
        assert listed == claims
        assert len(candidate["allocations"]) == 2
        for item in candidate["allocations"]:
            assert set(item) == {"resource_provider", "resources"}
            assert set(item["resource_provider"]) == {"uuid"}
    if at_least(version, "1.34"):
        assert set(candidate) == {"allocations", "mappings"}
        assert list(candidate["mappings"]) == [""]
        assert sorted(candidate["mappings"][""]) == sorted([world.host, world.pool])
    else:
        assert set(candidate) == {"allocations"}


@pytest.mark.parametrize("version", versions("1.10"))
def test_a_summary_has_the_form_of_its_microversion(world: World, version: str) -> None:
    """Traits from 1.17, every class from 1.27, whole trees with parent and root from 1.29."""
    answer = world.ask("resources=CPU:2,DISK:50", version)

    def summary(
        resources: dict[str, tuple[int, int]], traits: list[str], *, parent: str | None, root: str
    ) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "resources": {
                name: {"capacity": capacity, "used": in_use}
                for name, (capacity, in_use) in resources.items()
            }
        }
        if at_least(version, "1.17"):
            entry["traits"] = traits
        if at_least(version, "1.29"):
            entry |= {"parent_provider_uuid": parent, "root_provider_uuid": root}
        return entry

    of_host = {world.cpu: (4, 1)}
    if at_least(version, "1.27"):
        of_host[world.ram] = (16, 0)
    shared = ["MISC_SHARES_VIA_AGGREGATE"]
    expected = {
        world.host: summary(of_host, [world.trait], parent=None, root=world.host),
        world.pool: summary({world.disk: (135, 0)}, shared, parent=None, root=world.pool),
    }
    if at_least(version, "1.29"):
        expected[world.numa] = summary({world.port: (2, 0)}, [], parent=world.host, root=world.host)
    assert answer.json["provider_summaries"] == expected


@pytest.mark.parametrize("version", versions("1.17"))
def test_traits_stand_in_the_order_in_which_they_were_made(api: Client, version: str) -> None:
    """COMPAT: in the order of their ids, whatever their names."""
    cpu, (first, second, third) = custom_class(api), (custom_trait(api) for _ in range(3))
    for name in (f"{third}_Z", f"{second}_M", f"{first}_A"):
        assert api.put(f"/traits/{name}").status == 201
    host = provider(api, {cpu: 1}, traits=[f"{first}_A", f"{third}_Z", third, f"{second}_M"])
    answer = api.get(f"/allocation_candidates?resources={cpu}:1", version=version)
    assert answer.json["provider_summaries"][host]["traits"] == [
        third,
        f"{third}_Z",
        f"{second}_M",
        f"{first}_A",
    ]


@pytest.mark.parametrize("version", versions("1.10"))
def test_numbers_are_integers(world: World, version: str) -> None:
    """Capacity is rounded down to an integer, never 135.0."""
    answer = world.ask("resources=CPU:2,DISK:50", version)
    for entry in answer.json["provider_summaries"].values():
        for resource in entry["resources"].values():
            assert all(type(number) is int for number in resource.values())


@pytest.mark.parametrize("version", versions("1.10"))
def test_two_providers_of_one_tree_make_a_candidate_from_1_29(world: World, version: str) -> None:
    """Before, such candidates are left out (5.6)."""
    answer = world.ask("resources=CPU:1,PORT:1", version)
    number = len(answer.json["allocation_requests"])
    assert number == (1 if at_least(version, "1.29") else 0)
    if not number:
        assert answer.json == {"allocation_requests": [], "provider_summaries": {}}


@pytest.mark.parametrize("version", versions("1.10"))
def test_a_child_alone_makes_a_candidate_at_every_microversion(world: World, version: str) -> None:
    """From 1.29 the summary has the whole tree, before only the child."""
    answer = world.ask("resources=PORT:1", version)
    assert len(answer.json["allocation_requests"]) == 1
    summaries = set(answer.json["provider_summaries"])
    if at_least(version, "1.29"):
        assert summaries == {world.host, world.numa}
    else:
        assert summaries == {world.numa}


@pytest.mark.parametrize("version", versions("1.33"))
def test_mappings_name_each_group_of_the_request(world: World, version: str) -> None:
    """Amounts on one provider are summed over the groups."""
    answer = world.ask(
        "resources=CPU:1&resources_A=CPU:1,RAM:1&resources_B=PORT:2&group_policy=isolate", version
    )
    (candidate,) = answer.json["allocation_requests"]
    assert candidate["allocations"] == {
        world.host: {"resources": {world.cpu: 2, world.ram: 1}},
        world.numa: {"resources": {world.port: 2}},
    }
    if at_least(version, "1.34"):
        assert candidate["mappings"] == {
            "": [world.host],
            "_A": [world.host],
            "_B": [world.numa],
        }


def test_a_group_without_resources_is_in_the_mappings_only(world: World) -> None:
    """From 1.36."""
    query = f"resources_P=PORT:1&required_N={world.trait}&same_subtree=_P,_N&group_policy=none"
    (candidate,) = world.ask(query, "1.36").json["allocation_requests"]
    assert candidate == {
        "allocations": {world.numa: {"resources": {world.port: 1}}},
        "mappings": {"_P": [world.numa], "_N": [world.host]},
    }


@pytest.mark.parametrize("version", versions("1.10"))
def test_nothing_found_is_an_answer_with_both_keys(world: World, version: str) -> None:
    """200, never 404 or 409."""
    answer = world.ask("resources=CPU:4", version)
    assert answer.status == 200
    assert answer.json == {"allocation_requests": [], "provider_summaries": {}}


@pytest.mark.parametrize("version", versions("1.10"))
@pytest.mark.parametrize("query", ["resources=CPU:1", "resources=CPU:99"])
def test_the_headers_of_an_answer(world: World, version: str, query: str) -> None:
    """JSON without a charset; caching headers from 1.15."""
    headers = world.ask(query, version).headers
    assert headers["content-type"] == "application/json"
    assert headers["openstack-api-version"] == f"placement {version}"
    assert headers["vary"].lower() == "openstack-api-version"
    cached = at_least(version, "1.15")
    assert ("last-modified" in headers) is cached
    assert headers.get("cache-control") == ("no-cache" if cached else None)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (None, 200),
        ("", 200),
        ("*/*", 200),
        ("application/json", 200),
        ("application/*", 200),
        ("text/html,application/json;q=0.1", 200),
        ("text/plain", 406),
        ("application/json;q=0", 406),
        ("application/xml", 406),
    ],
)
def test_an_accept_that_does_not_admit_json_is_refused(
    world: World, accept: str | None, status: int
) -> None:
    """406; a request without `Accept` is fine."""
    path = f"/allocation_candidates?resources={world.cpu}:1"
    assert world.api.get(path, headers={"Accept": accept}).status == status


@pytest.mark.parametrize("version", versions("1.16"))
@pytest.mark.parametrize(("limit", "found"), [(1, 1), (2, 2), (3, 3), (4, 3), (1000, 3)])
def test_limit_takes_that_many_at_most(api: Client, version: str, limit: int, found: int) -> None:
    """A subset, with the summaries of exactly that subset."""
    name = custom_class(api)
    hosts = {provider(api, {name: 1}) for _ in range(3)}
    path = f"/allocation_candidates?resources={name}:1&limit={limit}"
    answer = api.get(path, version=version).json
    chosen = {uuid for request in answer["allocation_requests"] for uuid in request["allocations"]}
    assert len(answer["allocation_requests"]) == len(chosen) == found
    assert chosen <= hosts
    assert set(answer["provider_summaries"]) == chosen


@pytest.mark.parametrize("version", versions("1.10"))
def test_a_candidate_can_be_claimed_as_it_came(api: Client, version: str) -> None:
    """With the project, user, generation and type that the microversion requires; mappings are
    ignored."""
    world = World(api)
    query = "resources=CPU:2,DISK:50"
    (candidate,) = world.ask(query, version).json["allocation_requests"]
    body = claim_body(version, {}) | candidate
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert answer.status == 204, answer.json
    assert used(api, world.host) == {world.cpu: 3, world.ram: 0}
    assert world.ask(query, version).json["allocation_requests"] == []
    shown = world.ask("resources=CPU:1", version).json["provider_summaries"][world.host]
    assert shown["resources"][world.cpu] == {"capacity": 4, "used": 3}
