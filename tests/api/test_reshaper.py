# SPDX-License-Identifier: Apache-2.0
"""Reshaping: inventories and allocations moved in one transaction.

Source: rest-api.md section 12.
"""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.api.answers import (
    CONCURRENT_UPDATE,
    INVENTORY_IN_USE,
    PROVIDER_NOT_FOUND,
    assert_refused,
)
from tests.api.claims import Claims, claim_body, consumer, held, used
from tests.api.precedence import ALLOWED, FORBIDDEN, JSON, TEXT, Ask, Row, assert_precedence
from tests.api.versions import at_least, versions
from tests.api.worlds import NOWHERE, custom_class, generation, new_uuid, provider
from tests.client import Client

Inventories = Mapping[str, Mapping[str, Any]]


def inventories(api: Client, wanted: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The `inventories` of a body: for each provider its current generation and its new set."""
    return {
        uuid: {
            "resource_provider_generation": generation(api, uuid),
            "inventories": {
                name: {"total": value} if isinstance(value, int) else value
                for name, value in records.items()
            },
        }
        for uuid, records in wanted.items()
    }


def shown(api: Client, host: str) -> dict[str, int]:
    """The totals of a provider's inventories, by class."""
    answer = api.get(f"/resource_providers/{host}/inventories").json["inventories"]
    return {name: record["total"] for name, record in answer.items()}


class Host:
    """A root with all its memory and VCPU, a bare child, and a consumer on the root.

    host       VCPU=8(used:4)  MEMORY_MB=64(used:16)
      numa
    """

    def __init__(self, api: Client) -> None:
        self.root = provider(api, {"VCPU": 8, "MEMORY_MB": 64})
        self.numa = provider(api, parent=self.root)
        self.holder = consumer(api, {self.root: {"VCPU": 4, "MEMORY_MB": 16}})

    def vcpu_moved(self, api: Client, version: str = "1.39") -> dict[str, Any]:
        """The body that moves VCPU and its allocations from the root to the child."""
        claims = {self.root: {"MEMORY_MB": 16}, self.numa: {"VCPU": 4}}
        return {
            "inventories": inventories(api, {self.root: {"MEMORY_MB": 64}, self.numa: {"VCPU": 8}}),
            "allocations": {self.holder: claim_body(version, claims, consumer_generation=1)},
        }

    def state(self, api: Client) -> object:
        """Everything that a reshape could change."""
        return (
            generation(api, self.root),
            generation(api, self.numa),
            shown(api, self.root),
            shown(api, self.numa),
            api.get(f"/allocations/{self.holder}").json,
        )


@pytest.mark.parametrize("version", versions("1.30"))
def test_a_class_moves_with_what_is_held_of_it(api: Client, version: str) -> None:
    """204; both providers are incremented by 3, the consumer by 1."""
    host = Host(api)
    before = generation(api, host.root), generation(api, host.numa)

    answer = api.post("/reshaper", json=host.vcpu_moved(api, version), version=version)

    assert (answer.status, answer.body) == (204, b"")
    assert "last-modified" not in answer.headers
    assert "cache-control" not in answer.headers
    assert shown(api, host.root) == {"MEMORY_MB": 64}
    assert shown(api, host.numa) == {"VCPU": 8}
    assert held(api, host.holder) == {host.root: {"MEMORY_MB": 16}, host.numa: {"VCPU": 4}}
    assert (used(api, host.root), used(api, host.numa)) == ({"MEMORY_MB": 16}, {"VCPU": 4})
    assert (generation(api, host.root), generation(api, host.numa)) == (
        before[0] + 3,
        before[1] + 3,
    )
    assert api.get(f"/allocations/{host.holder}").json["consumer_generation"] == 2


@pytest.mark.parametrize("version", versions("1.0", "1.29"))
def test_there_is_no_reshaper_before_1_30(api: Client, version: str) -> None:
    """The route came with 1.30."""
    answer = api.post("/reshaper", json={}, version=version)
    assert_refused(answer, 404, version=version)


@pytest.mark.parametrize("version", versions("1.30"))
def test_mappings_and_type_follow_the_microversion(api: Client, version: str) -> None:
    """Mappings from 1.34; a type required from 1.38."""
    host = Host(api)
    body = host.vcpu_moved(api, version)
    body["allocations"][host.holder]["mappings"] = {"": [host.root]}
    answer = api.post("/reshaper", json=body, version=version)
    if at_least(version, "1.34"):
        assert answer.status == 204
    else:
        assert_refused(answer, 400, "'mappings' was unexpected", version=version)

    host = Host(api)
    body = host.vcpu_moved(api, version)
    if at_least(version, "1.38"):
        del body["allocations"][host.holder]["consumer_type"]
        says = "'consumer_type' is a required property"
    else:
        body["allocations"][host.holder]["consumer_type"] = "INSTANCE"
        says = "'consumer_type' was unexpected"
    answer = api.post("/reshaper", json=body, version=version)
    assert_refused(answer, 400, says, version=version)


def test_only_the_inventories_may_be_reshaped(api: Client) -> None:
    """`allocations` is required but may be empty; a non-empty set increments by 2."""
    host = provider(api, {"VCPU": 4})
    before = generation(api, host)
    body = {"inventories": inventories(api, {host: {"VCPU": 8, "DISK_GB": 1}}), "allocations": {}}
    assert api.post("/reshaper", json=body).status == 204
    assert shown(api, host) == {"VCPU": 8, "DISK_GB": 1}
    assert generation(api, host) == before + 2


def test_all_inventories_of_a_provider_may_go(api: Client) -> None:
    """`{}` deletes them and increments by 1."""
    host = provider(api, {"VCPU": 4})
    before = generation(api, host)
    body = {"inventories": inventories(api, {host: {}}), "allocations": {}}
    assert api.post("/reshaper", json=body).status == 204
    assert shown(api, host) == {}
    assert generation(api, host) == before + 1


def test_an_emptied_provider_that_takes_part_counts_twice(api: Client) -> None:
    """It is incremented if its consumer is emptied, but not if the consumer only moves off it."""
    left, host = provider(api, {"VCPU": 4}), provider(api)
    holder = consumer(api, {left: {"VCPU": 2}})
    before = generation(api, left)
    body = {
        "inventories": inventories(api, {left: {}}),
        "allocations": {holder: claim_body("1.39", {}, consumer_generation=1)},
    }
    assert api.post("/reshaper", json=body).status == 204
    assert generation(api, left) == before + 2
    assert held(api, holder) == {}

    left = provider(api, {"VCPU": 4})
    holder = consumer(api, {left: {"VCPU": 2}})
    before = generation(api, left)
    body = {
        "inventories": inventories(api, {left: {}, host: {"VCPU": 4}}),
        "allocations": {holder: claim_body("1.39", {host: {"VCPU": 2}}, consumer_generation=1)},
    }
    assert api.post("/reshaper", json=body).status == 204
    assert generation(api, left) == before + 1
    assert held(api, holder) == {host: {"VCPU": 2}}


def test_a_provider_outside_inventories_may_take_part(api: Client) -> None:
    """Its inventories stay, and it is incremented by 1."""
    host, pool = Host(api), provider(api, {"DISK_GB": 10})
    before = generation(api, pool)
    body = host.vcpu_moved(api)
    body["allocations"][host.holder]["allocations"][pool] = {"resources": {"DISK_GB": 5}}
    assert api.post("/reshaper", json=body).status == 204
    assert shown(api, pool) == {"DISK_GB": 10}
    assert used(api, pool) == {"DISK_GB": 5}
    assert generation(api, pool) == before + 1


def test_consumers_may_be_made_moved_and_removed(api: Client) -> None:
    """Project, user and type change as with PUT."""
    host, new = Host(api), new_uuid()
    body = host.vcpu_moved(api)
    body["allocations"] = {
        host.holder: claim_body("1.39", {}, consumer_generation=1),
        new: claim_body("1.39", {host.numa: {"VCPU": 8}}, project="p2", consumer_type="VOLUME"),
    }
    assert api.post("/reshaper", json=body).status == 204
    assert api.get(f"/allocations/{host.holder}").json == {"allocations": {}}
    made = api.get(f"/allocations/{new}").json
    assert (made["project_id"], made["consumer_type"]) == ("p2", "VOLUME")
    assert made["consumer_generation"] == 1


def test_reserved_may_exceed_total_here(api: Client) -> None:
    """There is no rule for the capacity of the inventories themselves."""
    host = provider(api)
    record = {"total": 4, "reserved": 10}
    body = {"inventories": inventories(api, {host: {"VCPU": record}}), "allocations": {}}
    assert api.post("/reshaper", json=body, version="1.30").status == 204
    assert shown(api, host) == {"VCPU": 4}


def test_an_inventory_may_shrink_below_its_use(api: Client) -> None:
    """If the allocations do not change."""
    host = Host(api)
    body = {
        "inventories": inventories(api, {host.root: {"VCPU": 2, "MEMORY_MB": 64}}),
        "allocations": {},
    }
    assert api.post("/reshaper", json=body).status == 204
    assert used(api, host.root) == {"VCPU": 4, "MEMORY_MB": 16}


def test_allocations_are_held_to_the_new_inventories(api: Client) -> None:
    """Units and capacity as for any claim."""
    host = Host(api)
    before = host.state(api)
    body = host.vcpu_moved(api)
    body["inventories"][host.numa]["inventories"]["VCPU"] = {"total": 3}
    answer = api.post("/reshaper", json=body)
    assert_refused(answer, 409, "The requested amount would exceed the capacity")
    body["inventories"][host.numa]["inventories"]["VCPU"] = {"total": 8, "step_size": 3}
    assert_refused(api.post("/reshaper", json=body), 409, "Unable to allocate")
    assert host.state(api) == before


def test_a_class_that_somebody_else_holds_does_not_go(api: Client) -> None:
    """409 `inventory.inuse`; the other consumer's allocations stay and count."""
    host = Host(api)
    consumer(api, {host.root: {"VCPU": 1}})
    before = host.state(api)
    answer = api.post("/reshaper", json=host.vcpu_moved(api))
    assert_refused(answer, 409, "Inventory for 'VCPU' on", "in use", code=INVENTORY_IN_USE)
    assert host.state(api) == before


def test_a_class_that_goes_may_not_be_claimed_any_more(api: Client) -> None:
    """It still exists while the allocations are written, and is then in use."""
    host = Host(api)
    before = host.state(api)
    body = host.vcpu_moved(api)
    claims = {host.root: {"VCPU": 4, "MEMORY_MB": 16}}
    body["allocations"][host.holder] = claim_body("1.39", claims, consumer_generation=1)
    assert_refused(api.post("/reshaper", json=body), 409, code=INVENTORY_IN_USE)
    assert host.state(api) == before


#: Parts of the body of `Host.vcpu_moved` that make it wrong: a path of keys, and what to put there.
#: ROOT and HOLDER stand for the uuids; the empty path is the body itself.
BROKEN: list[tuple[tuple[str, ...], Any]] = [
    ((), []),
    ((), None),
    (("color",), 1),
    (("inventories",), {}),
    (("inventories",), []),
    (("inventories",), None),
    (("inventories", "x"), {"resource_provider_generation": 0, "inventories": {}}),
    (("inventories", "ROOT"), {"inventories": {}}),
    (("inventories", "ROOT"), {"resource_provider_generation": 0}),
    (("inventories", "ROOT", "color"), 1),
    (("inventories", "ROOT", "resource_provider_generation"), "1"),
    (("inventories", "ROOT", "resource_provider_generation"), None),
    (("inventories", "ROOT", "inventories"), []),
    (("inventories", "ROOT", "inventories", "VCPU"), {}),
    (("inventories", "ROOT", "inventories", "VCPU"), {"total": 0}),
    (("inventories", "ROOT", "inventories", "VCPU"), {"total": 2147483648}),
    (("inventories", "ROOT", "inventories", "VCPU"), {"total": 1, "color": 1}),
    (("allocations",), None),
    (("allocations",), []),
    (("allocations", "x"), {}),
    (("allocations", "HOLDER"), {}),
    (("allocations", "HOLDER", "consumer_generation"), "1"),
    (("allocations", "HOLDER", "allocations"), []),
    (("allocations", "HOLDER", "allocations", "ROOT"), {"resources": {}}),
    (("allocations", "HOLDER", "allocations", "ROOT"), {"resources": {"VCPU": 0}}),
]


@pytest.mark.parametrize(("keys", "value"), BROKEN)
def test_a_body_that_breaks_the_schema_is_refused(
    api: Client, keys: tuple[str, ...], value: object
) -> None:
    """400, and nothing changes."""
    host = Host(api)
    before = host.state(api)
    body: Any = host.vcpu_moved(api)
    if keys:
        names = {"ROOT": host.root, "HOLDER": host.holder}
        *way, last = (names.get(key, key) for key in keys)
        part = body
        for key in way:
            part = part[key]
        part[last] = value
    else:
        body = value
    assert_refused(api.post("/reshaper", json=body), 400, "JSON does not validate")
    assert host.state(api) == before


@pytest.mark.parametrize("key", ["inventories", "allocations"])
def test_both_parts_are_required(api: Client, key: str) -> None:
    """Even if one of them is empty."""
    body = Host(api).vcpu_moved(api)
    del body[key]
    answer = api.post("/reshaper", json=body)
    assert_refused(answer, 400, f"'{key}' is a required property")


@pytest.mark.parametrize("name", ["vcpu", "", "A-B", "Ä"])
@pytest.mark.parametrize(
    "record",
    [
        {},
        [],
        {"total": "x"},
        pytest.param(None, marks=pytest.mark.deliberately_different("a 400, not a 500 (12, D)")),
    ],
)
def test_a_badly_formed_record_under_a_bad_name_is_refused(
    api: Client, name: str, record: object
) -> None:
    """Keys outside the pattern are invalid."""
    host = Host(api)
    before = host.state(api)
    body = host.vcpu_moved(api)
    body["inventories"][host.root]["inventories"][name] = record
    assert_refused(api.post("/reshaper", json=body), 400)
    assert host.state(api) == before


def test_faults_are_found_in_order(api: Client) -> None:
    """The table of section 12: each row repairs the fault before it."""
    host = Host(api)
    bystander = consumer(api, {host.root: {"MEMORY_MB": 1}})
    foreign = custom_class(api)
    before = generation(api, host.root), generation(api, host.numa)

    def body(
        *,
        first: str = host.numa,
        seen: int = 0,
        seen_consumer: int = 1,
        claims: Claims | None = None,
        new_class: str = "VCPU",
        keeps_memory: bool = False,
    ) -> dict[str, Any]:
        root = {"MEMORY_MB": {"total": 64}} if keeps_memory else {"VCPU": {"total": 8}}
        return {
            "inventories": {
                first: {
                    "resource_provider_generation": seen,
                    "inventories": {new_class: {"total": 8}},
                },
                host.root: {
                    "resource_provider_generation": generation(api, host.root),
                    "inventories": root,
                },
            },
            "allocations": {
                host.holder: claim_body(
                    "1.39",
                    claims or {NOWHERE: {"CUSTOM_NOT_THERE": 1}},
                    consumer_generation=seen_consumer,
                )
            },
        }

    unknown_class = {host.numa: {"CUSTOM_NOT_THERE": 1}}
    numa_only = {host.numa: {"VCPU": 4}}
    assert_precedence(
        api,
        Ask("POST", "/reshaper", version="1.29", body=b"{", headers=FORBIDDEN | TEXT),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.39"}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row(
                "the schema",
                {
                    "body": None,
                    "json": body(
                        first=new_uuid(), seen=9, seen_consumer=9, new_class="CUSTOM_NOT_HERE"
                    ),
                },
                400,
            ),
            Row(
                "the provider in inventories",
                {"json": body(seen=9, seen_consumer=9, new_class="CUSTOM_NOT_HERE")},
                409,
                "actual: 0, given: 9",
            ),
            Row(
                "its generation",
                {"json": body(seen_consumer=9, new_class="CUSTOM_NOT_HERE")},
                409,
                "consumer generation conflict",
            ),
            Row(
                "the consumer's generation",
                {"json": body(new_class="CUSTOM_NOT_HERE")},
                400,
                "that does not exist",
            ),
            Row(
                "the provider in allocations",
                {"json": body(claims=unknown_class, new_class="CUSTOM_NOT_HERE")},
                400,
                "CUSTOM_NOT_HERE",
            ),
            Row(
                "the class in inventories",
                {"json": body(claims=unknown_class)},
                400,
                "CUSTOM_NOT_THERE",
            ),
            Row(
                "the class in allocations",
                {"json": body(claims={host.numa: {foreign: 1}})},
                409,
                "Inventory for",
            ),
            Row(
                "the inventory",
                {"json": body(claims={host.numa: {"VCPU": 9}})},
                409,
                "exceed the capacity",
            ),
            Row("the amount", {"json": body(claims=numa_only)}, 409, "in use"),
        ],
    )
    assert (generation(api, host.root), generation(api, host.numa)) == before
    assert api.delete(f"/allocations/{bystander}").status == 204
    assert api.post("/reshaper", json=body(claims=numa_only)).status == 204


def test_each_conflict_has_its_code(api: Client) -> None:
    """Clients act on the codes."""
    host = Host(api)

    body = host.vcpu_moved(api)
    body["inventories"][NOWHERE] = body["inventories"].pop(host.numa)
    answer = api.post("/reshaper", json=body)
    assert_refused(answer, 400, NOWHERE, code=PROVIDER_NOT_FOUND)

    body = host.vcpu_moved(api)
    body["inventories"][host.numa]["resource_provider_generation"] = 5
    answer = api.post("/reshaper", json=body)
    assert_refused(answer, 409, "actual: 0, given: 5", code=CONCURRENT_UPDATE)
    assert "consumer generation conflict" not in answer.detail

    body = host.vcpu_moved(api)
    body["allocations"][host.holder]["consumer_generation"] = 5
    answer = api.post("/reshaper", json=body)
    assert_refused(
        answer,
        409,
        "consumer generation conflict",
        "expected 1 but got 5",
        code=CONCURRENT_UPDATE,
    )


@pytest.mark.deliberately_different("a failed reshape leaves no consumer behind (12, D)")
def test_a_reshape_on_an_unknown_provider_leaves_no_consumer_behind(api: Client) -> None:
    """The next attempt creates it."""
    host, new = Host(api), new_uuid()
    body = host.vcpu_moved(api)
    body["allocations"][new] = claim_body("1.39", {NOWHERE: {"VCPU": 1}})
    assert_refused(api.post("/reshaper", json=body), 400, "that does not exist")
    body["allocations"][new] = claim_body("1.39", {host.numa: {"VCPU": 1}})
    assert api.post("/reshaper", json=body).status == 204
