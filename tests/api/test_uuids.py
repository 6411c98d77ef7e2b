# SPDX-License-Identifier: Apache-2.0
"""The accepted spellings of a uuid, and the one that is stored.

berth accepts every spelling of a uuid that the route accepts, and stores the lower-case form with
dashes; for an aggregate, the spelling that created it.

Source: rest-api.md 1.9.
"""

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import claim_body, consumer, held
from tests.api.versions import at_least, versions
from tests.api.worlds import (
    done,
    generation,
    new_name,
    new_uuid,
    provider,
    put_aggregates,
    uuids_of,
)
from tests.client import Client
from tests.routes import VERSIONS

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
def test_a_new_provider_may_spell_its_uuid_freely(api: Client, how: str) -> None:
    """It is stored in lower case with dashes."""
    for version in VERSIONS:
        uuid = new_uuid()
        body = {"name": new_name(), "uuid": spell(uuid, how)}
        created = api.post("/resource_providers", json=body, version=version)
        assert created.status == (200 if at_least(version, "1.20") else 201)
        assert created.headers["Location"].endswith(f"/resource_providers/{uuid}")
        assert api.get(f"/resource_providers/{uuid}", version=version).json["uuid"] == uuid


@pytest.mark.parametrize("how", WRONG)
def test_what_is_no_uuid_is_refused_in_bodies(api: Client, how: str) -> None:
    """The uuid and the parent of a provider, and aggregates."""
    uuid, rp = spell(new_uuid(), how), provider(api)
    body: dict[str, object] = {"name": new_name(), "uuid": uuid}
    assert_refused(api.post("/resource_providers", json=body), 400, "is not a 'uuid'")
    body = {"name": new_name(), "parent_provider_uuid": uuid}
    assert_refused(api.post("/resource_providers", json=body), 400)
    assert_refused(api.put(f"/resource_providers/{rp}", json=body), 400)
    body = {"aggregates": [uuid], "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{rp}/aggregates", json=body)
    assert_refused(answer, 400, "is not a 'uuid'")


@NORMALISED
@pytest.mark.parametrize("how", LAX)
def test_a_parent_may_be_spelled_freely(api: Client, how: str) -> None:
    """Any spelling finds the parent."""
    parent = provider(api)
    body = {"name": new_name(), "parent_provider_uuid": spell(parent, how)}
    child = done(api.post("/resource_providers", json=body), 200).json
    assert child["parent_provider_uuid"] == parent


@NORMALISED
def test_a_path_finds_a_provider_in_any_letter_case(api: Client) -> None:
    """In a path, the upper-case form finds the provider."""
    uuid = provider(api)
    assert api.get(f"/resource_providers/{uuid.upper()}").json["uuid"] == uuid


@pytest.mark.parametrize("text", ["x", "-", "0", "%7B%7D", "a" * 300])
def test_a_path_may_hold_anything(api: Client, text: str) -> None:
    """Anything else is an unknown provider: 404, never 400."""
    for tail in ("", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"):
        answer = api.get(f"/resource_providers/{text}{tail}")
        assert_refused(answer, 404, "No resource provider with uuid")


@pytest.mark.parametrize("how", ["dashed", *LAX])
def test_a_consumer_in_the_path_may_be_spelled_freely(api: Client, how: str) -> None:
    """PUT /allocations stores the lower-case form with dashes."""
    rp, uuid = provider(api, {"VCPU": 1}), new_uuid()
    body = claim_body("1.39", {rp: {"VCPU": 1}})
    assert api.put(f"/allocations/{spell(uuid, how)}", json=body).status == 204
    assert held(api, uuid) == {rp: {"VCPU": 1}}


@pytest.mark.parametrize("text", ["x", "%20", "a" * 32 + "g", "a" * 37])
def test_a_consumer_to_write_to_must_be_a_uuid(api: Client, text: str) -> None:
    """PUT checks it before the body."""
    assert_refused(api.put(f"/allocations/{text}", json={}), 400, "Malformed consumer_uuid")


@pytest.mark.parametrize("text", ["x", "%20", "a" * 37])
def test_a_consumer_to_read_or_delete_may_be_anything(api: Client, text: str) -> None:
    """GET returns no allocations, and DELETE 404."""
    assert api.get(f"/allocations/{text}").json == {"allocations": {}}
    assert_refused(api.delete(f"/allocations/{text}"), 404, "No allocations for consumer")


@NORMALISED
@pytest.mark.parametrize("how", ["upper", "undashed"])
def test_a_consumer_is_found_in_every_spelling_that_wrote_it(api: Client, how: str) -> None:
    """GET and DELETE accept the spellings that PUT accepts."""
    rp = provider(api, {"VCPU": 1})
    uuid = consumer(api, {rp: {"VCPU": 1}})
    assert held(api, spell(uuid, how)) == {rp: {"VCPU": 1}}
    assert api.delete(f"/allocations/{spell(uuid, how)}").status == 204


@pytest.mark.parametrize("how", ["undashed", "braced", "urn", "x", "short", "not hex", ""])
def test_keys_of_bodies_have_36_characters(api: Client, how: str) -> None:
    """Uuids of consumers and providers that are keys of an object must have 36 characters."""
    rp = provider(api, {"VCPU": 1})
    good = claim_body("1.39", {rp: {"VCPU": 1}})
    bad = claim_body("1.39", {spell(rp, how): {"VCPU": 1}})
    said = "does not match any of the regexes"
    assert_refused(api.post("/allocations", json={spell(new_uuid(), how): good}), 400, said)
    assert_refused(api.post("/allocations", json={new_uuid(): bad}), 400, said)
    assert_refused(api.put(f"/allocations/{new_uuid()}", json=bad), 400, said)
    inventories = {"inventories": {}, "resource_provider_generation": 0}
    body = {"inventories": {spell(rp, how): inventories}, "allocations": {}}
    assert_refused(api.post("/reshaper", json=body), 400, said)


@NORMALISED
def test_a_provider_to_reshape_is_found_in_any_letter_case(api: Client) -> None:
    """The keys of inventories and of allocations."""
    rp, uuid = provider(api, {"VCPU": 1}), new_uuid()
    inventories = {
        "inventories": {"VCPU": {"total": 2}},
        "resource_provider_generation": generation(api, rp),
    }
    claim = claim_body("1.39", {rp.upper(): {"VCPU": 2}})
    body = {"inventories": {rp.upper(): inventories}, "allocations": {uuid.upper(): claim}}
    done(api.post("/reshaper", json=body), 204)
    assert held(api, uuid) == {rp: {"VCPU": 2}}


@pytest.mark.parametrize("version", versions("1.0", "1.11"))
@NORMALISED
def test_a_provider_in_the_list_form_may_be_spelled_freely(api: Client, version: str) -> None:
    """Below 1.12 a provider's uuid is a value, not a key."""
    rp = provider(api, {"VCPU": 1})
    body = claim_body(version, {spell(rp, "undashed"): {"VCPU": 1}})
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert answer.status == 204


@pytest.mark.parametrize("how", ["dashed", *LAX])
def test_aggregates_may_be_spelled_freely(api: Client, how: str) -> None:
    """The response to PUT repeats them as they were sent."""
    uuid, sent = provider(api), spell(new_uuid(), how)
    body = {"aggregates": [sent], "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{uuid}/aggregates", json=body)
    assert (answer.status, answer.json["aggregates"]) == (200, [sent])


@pytest.mark.parametrize("how", ["dashed", *KEPT])
def test_an_aggregate_is_shown_as_it_was_sent(api: Client, how: str) -> None:
    """Clients compare what they read with what they wrote."""
    sent = spell(new_uuid(), how)
    uuid = provider(api, aggregates=[sent])
    assert api.get(f"/resource_providers/{uuid}/aggregates").json["aggregates"] == [sent]


@NORMALISED
@pytest.mark.parametrize("how", [spelling for spelling in LAX if spelling not in KEPT])
def test_an_aggregate_in_a_rare_spelling_is_shown_in_the_usual_one(api: Client, how: str) -> None:
    """Not every spelling fits into the column."""
    aggregate = new_uuid()
    uuid = provider(api, aggregates=[spell(aggregate, how)])
    assert api.get(f"/resource_providers/{uuid}/aggregates").json["aggregates"] == [aggregate]


@NORMALISED
@pytest.mark.parametrize("how", ["dashed", *LAX])
def test_an_aggregate_is_one_in_every_spelling(api: Client, how: str) -> None:
    """Every spelling that `member_of` accepts finds it, on both routes."""
    aggregate = new_uuid()
    uuid = provider(api, {"VCPU": 1}, aggregates=[spell(aggregate, how)])
    for another in ("dashed", *LAX):
        query = f"member_of={spell(aggregate, another)}"
        assert uuids_of(api.get(f"/resource_providers?{query}")) == {uuid}
        body = api.get(f"/allocation_candidates?resources=VCPU:1&{query}").json
        assert list(body["provider_summaries"]) == [uuid]


@NORMALISED
def test_an_aggregate_keeps_the_spelling_that_made_it(api: Client) -> None:
    """Later spellings of others do not change it; the response to their PUT repeats theirs."""
    aggregate = new_uuid()
    one, another = provider(api, aggregates=[spell(aggregate, "undashed")]), provider(api)
    body = {"aggregates": [aggregate], "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{another}/aggregates", json=body)
    assert answer.json["aggregates"] == [aggregate]
    for uuid in (one, another):
        shown = api.get(f"/resource_providers/{uuid}/aggregates").json["aggregates"]
        assert shown == [spell(aggregate, "undashed")]


@pytest.mark.parametrize("how", ["dashed", *LAX])
def test_member_of_takes_every_spelling(api: Client, how: str) -> None:
    """They are accepted, whether OpenStack Placement would match them or not."""
    query = f"/resource_providers?member_of={spell(new_uuid(), how)}"
    assert uuids_of(api.get(query)) == set()


@pytest.mark.parametrize("how", ["x", "short", "not hex", "%20{uuid}", "{uuid}%20"])
def test_member_of_refuses_what_is_no_uuid(api: Client, how: str) -> None:
    """Blanks are refused too."""
    value = how.format(uuid=new_uuid()) if "{" in how else spell(new_uuid(), how)
    said = "Expected 'member_of' parameter to contain valid UUID(s)."
    assert_refused(api.get(f"/resource_providers?member_of={value}"), 400, said)


@NORMALISED
def test_two_spellings_in_one_list_are_one_aggregate(api: Client) -> None:
    """The list is accepted because the texts differ, and the aggregate is stored once."""
    uuid, aggregate = provider(api), new_uuid()
    put_aggregates(api, uuid, [aggregate, aggregate.upper()])
    assert api.get(f"/resource_providers/{uuid}/aggregates").json["aggregates"] == [aggregate]
    assert generation(api, uuid) == 1
