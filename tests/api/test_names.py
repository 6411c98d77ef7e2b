# SPDX-License-Identifier: Apache-2.0
"""Valid names and numbers, also unusual ones, and the absence of limits.

Source: rest-api.md 1.10, 14 and 15. Invalid input of every kind is in `test_bad_input.py`.
"""

from urllib.parse import quote

import pytest

from tests.api.claims import claim_body, held
from tests.api.wire import Rule, rules
from tests.api.worlds import done, generation, new_name, new_uuid, provider
from tests.client import Client

NAMES = [
    "Größe",
    "نص عربي",
    "e\u0301 is not é",
    "\U0001f6a2 a ship beyond the basic plane",
    " blanks around ",
    "<script>alert(1)</script>",
    "'; DROP TABLE resource_providers; --",
    'quo"te\\',
    "\x7f\x01",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_provider_may_have_any_name(api: Client, name: str) -> None:
    """It round-trips in bodies and queries."""
    uuid = new_uuid()
    name = f"{name} {uuid}"
    made = api.post("/resource_providers", json={"name": name, "uuid": uuid})
    assert (made.status, made.json["name"]) == (200, name)
    assert api.get(f"/resource_providers/{uuid}").json["name"] == name
    body = api.get(f"/resource_providers?name={quote(name, safe='')}").json
    assert [entry["uuid"] for entry in body["resource_providers"]] == [uuid]


def test_a_provider_name_is_compared_exactly(api: Client) -> None:
    """Letter case, blanks and accents make a different name (19)."""
    name = new_name("höst")
    names = {name, name.upper(), f"{name} ", f" {name}", name.replace("ö", "o", 1)}
    for other in names:
        assert api.post("/resource_providers", json={"name": other}).status == 200
    providers = api.get(f"/resource_providers?name={quote(name)}").json["resource_providers"]
    assert [each["name"] for each in providers] == [name]


def test_lists_have_no_limit(api: Client) -> None:
    """Of aggregates, of consumers in one POST, of providers in one PUT, of one trait again."""
    host = provider(api, {"VCPU": 1000})
    path = f"/resource_providers/{host}"
    seen = {"resource_provider_generation": generation(api, host)}
    aggregates = [new_uuid() for _ in range(2000)]
    done(api.put(f"{path}/aggregates", json={"aggregates": aggregates, **seen}), 200)
    assert sorted(api.get(f"{path}/aggregates").json["aggregates"]) == sorted(aggregates)
    several = {new_uuid(): claim_body("1.39", {host: {"VCPU": 1}}) for _ in range(1000)}
    done(api.post("/allocations", json=several), 204)
    assert set(api.get(f"{path}/allocations").json["allocations"]) == set(several)
    claims = {provider(api, {"VCPU": 1}): {"VCPU": 1} for _ in range(100)}
    holder = new_uuid()
    done(api.put(f"/allocations/{holder}", json=claim_body("1.39", claims)), 204)
    assert held(api, holder) == claims
    seen = {"resource_provider_generation": generation(api, host)}
    answer = api.put(f"{path}/traits", json={"traits": ["HW_CPU_X86_AVX2"] * 5000, **seen})
    assert done(answer, 200).json["traits"] == ["HW_CPU_X86_AVX2"]


@rules(
    r"""
    the longest name can be used, and a trait and a class may share one
        PUT /traits/CUSTOM_B*248 => 201
        GET /resource_classes/CUSTOM_B*248 => 404
        PUT /resource_classes/CUSTOM_B*248 => 201
        PUT $host/inventories {inventories: {CUSTOM_B*248: {total: 1}}, seen: 1}
        200 {inventories: {CUSTOM_B*248: _}, seen: 2}
        PUT $host/traits {traits: [CUSTOM_B*248], seen: 2} => 200 {traits: [CUSTOM_B*248], seen: 3}
    a custom name has a pattern
        PUT /$2/$1 => 400
        PUT /$3/$1 => 400
        | CUSTOM_         | traits | resource_classes
        | CUSTOM_a        | traits | resource_classes
        | CUSTOM_A%20     | traits | resource_classes
        | CUSTOM_%C3%89   | traits | resource_classes
        | NOT_CUSTOM      | traits | resource_classes
    a class in a body has a pattern
        PUT /allocations/$vm CLAIM {allocations: {$host: {resources: {"$1": 1}}}} => 400
        POST $host/inventories {resource_class: "$1", total: 1} => 400 does not match '^[A-Z0-9_]+$'
        || vcpu || VCPU\x20 || V-CPU || É
        |
        || VCPU. || V CPU
    an owner may be anything
        PUT /allocations/$vm CLAIM host VCPU=1 {project_id: "$1", user_id: "$1"} => 204
        GET /allocations/$vm => 200 {project_id: "$1", user_id: "$1", ...}
        || X*255 || not a uuid || né 💾 || <b>
    an inventory holds 31 bits
        PUT $host/inventories {seen: 1, inventories: {VCPU: {total: 2147483647, $1: 2147483647}}}
        200
        || reserved || min_unit || max_unit || step_size
    unicode in a path names nothing
        $1 /$2/%F0%9F%9A%A2$3 => 404
        | GET    | traits |
        | DELETE | traits |
        | DELETE | resource_classes |
        | GET    | resource_providers | /usages
        | DELETE | resource_providers |
    """,
    world="host  VCPU=1",
)
def test_names_and_numbers(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("where the original answers 500, or takes a final newline")
@rules(
    """
    a name may not end with a newline
        PUT /$1/CUSTOM_A%0A => 400
        || traits || resource_classes
    a bad class in a set of inventories is judged
        PUT $host/inventories {inventories: {"$1": $2}, seen: 1} => 400
        | vcpu | nonsense
        | vcpu | {total: 1}
        |      | nonsense
        |      | {total: 1}
    """,
    world="host  VCPU=1",
)
def test_names_that_the_original_takes_or_fails_at(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
