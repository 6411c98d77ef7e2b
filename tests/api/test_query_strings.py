# SPDX-License-Identifier: Apache-2.0
"""How query strings are parsed, on the routes of providers and traits.

Source: rest-api.md 1.6.
"""

import pytest

from tests.api.answers import assert_refused
from tests.api.worlds import custom_trait, new_name, new_uuid, provider, put_traits, uuids_of
from tests.client import Client
from tests.routes import VERSIONS

DECLARING = ["/resource_providers", "/traits", "/usages", "/allocation_candidates"]


@pytest.mark.parametrize("path", DECLARING)
@pytest.mark.parametrize("name", ["unknown", "NAME", "Uuid", "%C3%A9", "%20"])
def test_an_unknown_parameter_is_400(api: Client, path: str, name: str) -> None:
    """Names are case-sensitive."""
    assert_refused(api.get(f"{path}?{name}=x"), 400, "Invalid query string parameters")


def test_values_are_percent_decoded_as_utf_8(api: Client) -> None:
    """A plus is a blank unless it is encoded, and other bytes are UTF-8."""
    unique = new_name("höst a+b")
    uuid = provider(api, name=unique)
    tail = unique.removeprefix("höst a+b")
    assert uuids_of(api.get(f"/resource_providers?name=h%C3%B6st%20a%2Bb{tail}")) == {uuid}
    assert uuids_of(api.get(f"/resource_providers?n%61me=h%c3%b6st+a%2bb{tail}")) == {uuid}


@pytest.mark.parametrize(
    "query",
    [
        "/resource_providers?name=%FF",
        "/resource_providers?%FF=a",
        "/traits?name=%FF",
        "/resource_providers?name=%C3",
        pytest.param(
            "/usages?project_id=%FF",
            marks=pytest.mark.deliberately_different("the original answers 500"),
        ),
    ],
)
def test_bytes_that_are_not_utf_8_are_400(api: Client, query: str) -> None:
    """They cannot be decoded."""
    assert_refused(api.get(query), 400)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_last_of_repeated_parameters_wins(api: Client, version: str) -> None:
    """Only the last value is used and checked."""
    name = new_name()
    uuid = provider(api, name=name)
    response = api.get(f"/resource_providers?name=other&name={name}", version=version)
    assert uuids_of(response) == {uuid}
    response = api.get(f"/resource_providers?uuid=nonsense&uuid={uuid}", version=version)
    assert uuids_of(response) == {uuid}
    answer = api.get(f"/resource_providers?uuid={uuid}&uuid=nonsense", version=version)
    assert_refused(answer, 400, version=version)


def test_the_last_value_wins_for_the_other_parameters_too(api: Client) -> None:
    """`in_tree`, `resources` and the parameters of `GET /traits`."""
    uuid = provider(api, {"VCPU": 4})
    trait = custom_trait(api)
    tree = f"in_tree=nonsense&in_tree={uuid}"
    assert uuids_of(api.get(f"/resource_providers?{tree}")) == {uuid}
    resources = f"uuid={uuid}&resources=nonsense&resources=VCPU:4"
    assert uuids_of(api.get(f"/resource_providers?{resources}")) == {uuid}
    response = api.get(f"/traits?name=nonsense&name=in:{trait}")
    assert response.json["traits"] == [trait]
    response = api.get(f"/traits?name=in:{trait}&associated=perhaps&associated=false")
    assert response.json["traits"] == [trait]


@pytest.mark.parametrize("name", ["uuid", "in_tree"])
@pytest.mark.parametrize(
    "shape",
    ["{dashless}", "{{{uuid}}}", "urn:uuid:{uuid}", "%20{uuid}", "{uuid}%20", "x", "", "{uuid}%0A"],
)
def test_a_uuid_to_filter_by_must_be_dashed(api: Client, name: str, shape: str) -> None:
    """Query strings are stricter than bodies."""
    uuid = provider(api)
    value = shape.format(uuid=uuid, dashless=uuid.replace("-", ""))
    assert_refused(api.get(f"/resource_providers?{name}={value}"), 400)


@pytest.mark.deliberately_different("berth takes a uuid in any letter case for the same uuid")
@pytest.mark.parametrize("name", ["uuid", "in_tree"])
def test_a_uuid_to_filter_by_has_no_letter_case(api: Client, name: str) -> None:
    """In upper case it finds the provider."""
    uuid = provider(api)
    assert uuids_of(api.get(f"/resource_providers?{name}={uuid.upper()}")) == {uuid}


@pytest.mark.parametrize("name", ["uuid", "in_tree"])
def test_an_upper_case_uuid_is_well_formed(api: Client, name: str) -> None:
    """It is accepted, whether it matches or not."""
    assert uuids_of(api.get(f"/resource_providers?{name}={new_uuid().upper()}")) == set()


@pytest.mark.parametrize("separator", ["&", ";", "&;"])
def test_a_semicolon_separates_parameters_too(api: Client, separator: str) -> None:
    """As in the original."""
    name = new_name()
    uuid = provider(api, name=name)
    query = separator.join((f"name={name}", f"uuid={uuid}"))
    assert uuids_of(api.get(f"/resource_providers?{query}")) == {uuid}


def test_an_empty_query_is_no_query(api: Client) -> None:
    """A question mark alone, or with separators only."""
    for query in ("?", "?&", "?&&"):
        assert api.get(f"/resource_providers{query}").status == 200


def test_every_member_of_and_every_required_counts(api: Client) -> None:
    """These two parameters may be repeated: all values must match."""
    a, b = new_uuid(), new_uuid()
    red, blue = custom_trait(api), custom_trait(api)
    both = provider(api, aggregates=[a, b], traits=[red, blue])
    first = provider(api, aggregates=[a])
    put_traits(api, first, [red])
    response = api.get(f"/resource_providers?member_of={a}&member_of={b}")
    assert uuids_of(response) == {both}
    response = api.get(f"/resource_providers?required={red}&required={blue}")
    assert uuids_of(response) == {both}
    response = api.get(f"/resource_providers?required={red}")
    assert uuids_of(response) == {both, first}
