# SPDX-License-Identifier: Apache-2.0
"""The accepted spellings of a uuid, and the one that is stored.

berth accepts every spelling of a uuid that the route accepts, and stores the lower-case form with
dashes; for an aggregate, the spelling that created it.

Source: rest-api.md 1.9.
"""

from urllib.parse import quote

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import claim_body, held
from tests.api.versions import at_least
from tests.api.wire import Rule, rules
from tests.api.worlds import done, new_name, new_uuid, provider, uuids_of
from tests.client import Client

#: Spellings of one uuid by what they are, in the words of `spell`.
LAX = ["upper", "undashed", "dashes anywhere", "braced", "urn", "undashed upper", "braced undashed"]

#: Those in which an aggregate is kept.
KEPT = ["upper", "undashed", "undashed upper"]

WRONG = ["", " ", "x", "blank before", "blank after", "short", "long", "not hex", "newline after"]

NORMALISED = pytest.mark.deliberately_different(
    "berth takes every spelling of a uuid for the same uuid; the original compares as sent"
)


def spell(uuid: str, how: str) -> str:
    """Spell a uuid in another way, valid or not."""
    undashed = uuid.replace("-", "")
    return {
        "dashed": uuid,
        "upper": uuid.upper(),
        "undashed": undashed,
        "undashed upper": undashed.upper(),
        "dashes anywhere": "-".join(undashed[start : start + 5] for start in range(0, 32, 5)),
        "braced": f"{{{uuid}}}",
        "braced undashed": f"{{{undashed}}}",
        "urn": f"urn:uuid:{uuid}",
        "blank before": f" {uuid}",
        "blank after": f"{uuid} ",
        "newline after": f"{uuid}\n",
        "short": uuid[:-1],
        "long": f"{uuid}0",
        "not hex": f"g{uuid[1:]}",
    }.get(how, how)


@pytest.mark.parametrize("how", ["dashed", *LAX])
def test_a_write_may_spell_its_uuid_freely(api: Client, how: str) -> None:
    """Providers and consumers are stored in lower case with dashes; PUT repeats aggregates."""
    for version in ("1.0", "1.19", "1.20", "1.39"):
        uuid = new_uuid()
        body = {"name": new_name(), "uuid": spell(uuid, how)}
        created = api.post("/resource_providers", json=body, version=version)
        assert created.status == (200 if at_least(version, "1.20") else 201)
        assert created.headers["Location"].endswith(f"/resource_providers/{uuid}")
        assert api.get(f"/resource_providers/{uuid}", version=version).json["uuid"] == uuid
    host, uuid = provider(api, {"VCPU": 1}), new_uuid()
    claim = claim_body("1.39", {host: {"VCPU": 1}})
    done(api.put(f"/allocations/{spell(uuid, how)}", json=claim), 204)
    assert held(api, uuid) == {host: {"VCPU": 1}}
    sent = spell(new_uuid(), how)
    joined = {"aggregates": [sent], "resource_provider_generation": 2}
    answer = api.put(f"/resource_providers/{host}/aggregates", json=joined)
    assert done(answer, 200).json["aggregates"] == [sent]
    assert uuids_of(api.get(f"/resource_providers?member_of={spell(new_uuid(), how)}")) == set()


@NORMALISED
@pytest.mark.parametrize("how", LAX)
def test_every_spelling_is_one_uuid(api: Client, how: str) -> None:
    """Of a parent, of an aggregate on both routes; it is shown as it was sent, if it fits."""
    parent, aggregate = provider(api), new_uuid()
    body = {"name": new_name(), "parent_provider_uuid": spell(parent, how)}
    child = done(api.post("/resource_providers", json=body), 200).json
    assert child["parent_provider_uuid"] == parent
    uuid = provider(api, {"VCPU": 1}, aggregates=[spell(aggregate, how)])
    shown = api.get(f"/resource_providers/{uuid}/aggregates").json["aggregates"]
    assert shown == [spell(aggregate, how) if how in KEPT else aggregate]
    for another in ("dashed", *LAX):
        query = f"member_of={spell(aggregate, another)}"
        assert uuids_of(api.get(f"/resource_providers?{query}")) == {uuid}
        answer = api.get(f"/allocation_candidates?resources=VCPU:1&{query}").json
        assert list(answer["provider_summaries"]) == [uuid]
    # Below 1.12 a provider's uuid is a value, not a key.
    claim = claim_body("1.11", {spell(uuid, how): {"VCPU": 1}})
    done(api.put(f"/allocations/{new_uuid()}", json=claim, version="1.11"), 204)


@pytest.mark.parametrize("how", WRONG)
def test_what_is_no_uuid_is_refused_in_bodies(api: Client, how: str) -> None:
    """The uuid and the parent of a provider, and aggregates; in a query too."""
    uuid, host = spell(new_uuid(), how), provider(api)
    body: dict[str, object] = {"name": new_name(), "uuid": uuid}
    assert_refused(api.post("/resource_providers", json=body), 400, "is not a 'uuid'")
    body = {"name": new_name(), "parent_provider_uuid": uuid}
    assert_refused(api.post("/resource_providers", json=body), 400)
    assert_refused(api.put(f"/resource_providers/{host}", json=body), 400)
    body = {"aggregates": [uuid], "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{host}/aggregates", json=body)
    assert_refused(answer, 400, "is not a 'uuid'")
    said = "Expected 'member_of' parameter to contain valid UUID(s)."
    assert_refused(api.get(f"/resource_providers?member_of={quote(uuid)}"), 400, said)


@pytest.mark.parametrize("how", ["undashed", "braced", "short", ""])
def test_keys_of_bodies_have_36_characters(api: Client, how: str) -> None:
    """Uuids of consumers and providers that are keys of an object must have 36 characters."""
    host = provider(api, {"VCPU": 1})
    good = claim_body("1.39", {host: {"VCPU": 1}})
    bad = claim_body("1.39", {spell(host, how): {"VCPU": 1}})
    inventories = {spell(host, how): {"inventories": {}, "resource_provider_generation": 0}}
    for answer in (
        api.post("/allocations", json={spell(new_uuid(), how): good}),
        api.put(f"/allocations/{new_uuid()}", json=bad),
        api.post("/reshaper", json={"inventories": inventories, "allocations": {}}),
    ):
        assert_refused(answer, 400, "does not match any of the regexes")


@rules(
    """
    what names nobody in a path is 404, never 400
        GET /resource_providers/$1 => 404 No resource provider with uuid
        GET /resource_providers/$1/inventories => 404 No resource provider with uuid
        GET /resource_providers/$1/usages => 404 No resource provider with uuid
        GET /resource_providers/$1/aggregates => 404 No resource provider with uuid
        GET /resource_providers/$1/traits => 404 No resource provider with uuid
        GET /resource_providers/$1/allocations => 404 No resource provider with uuid
        || x || - || 0 || %7B%7D || a*300
    a consumer to write to must be a uuid, before the body is looked at
        PUT /allocations/$1 {} => 400 Malformed consumer_uuid
        || x || %20 || a*33g || a*37
    a consumer to read or delete may be anything
        GET /allocations/$1 => 200 {allocations: {}}
        DELETE /allocations/$1 => 404 No allocations for consumer
        || x || %20 || a*37
    """
)
def test_paths(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@NORMALISED
@rules(
    """
    a path has no letter case
        GET /resource_providers/$host.upper => 200 {uuid: $host, ...}
    a provider to reshape has no letter case
        POST /reshaper {inventories: {$host.upper: {inventories: {VCPU: {total: 2}}, seen: $host}},
            allocations: {$vm.upper: {allocations: {$host.upper: {resources: {VCPU: 2}}},
            project_id: p, user_id: u, consumer_generation: null, consumer_type: X}}}
        204
        GET /allocations/$vm => 200 {allocations: {$host: {resources: {VCPU: 2}, ...}}, ...}
    two spellings in one list are one aggregate
        PUT $host/aggregates {aggregates: [$A, $A.upper], seen: 1}
        200 {aggregates: [$A, $A.upper], seen: 2}
        GET $host/aggregates => 200 {aggregates: [$A], seen: 2}
    an aggregate keeps the spelling that made it
        PUT $host/aggregates {aggregates: [$A.upper], seen: 1} => 200
        PUT $other/aggregates {aggregates: [$A], seen: 0} => 200 {aggregates: [$A], seen: 1}
        GET $host/aggregates => 200 {aggregates: [$A.upper], seen: 2}
        GET $other/aggregates => 200 {aggregates: [$A.upper], seen: 1}
    """,
    world="host VCPU=1\nother",
)
def test_letter_case(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
