# SPDX-License-Identifier: Apache-2.0
"""Traits, and the traits of a provider.

Source: rest-api.md 7.
"""

from __future__ import annotations

from typing import Any

import os_traits
import pytest

from tests.api.answers import CONCURRENT_UPDATE, assert_refused
from tests.api.versions import versions
from tests.api.worlds import (
    NOWHERE,
    custom_trait,
    done,
    new_custom_name,
    new_uuid,
    provider,
    put_traits,
    uuids_of,
)
from tests.client import Client

STANDARD = "HW_CPU_X86_AVX2"


def names_of(api: Client, query: str, version: str = "1.39") -> set[str]:
    """The names that a query of `GET /traits` returns, each once."""
    body = done(api.get(f"/traits{query}", version=version), 200).json
    assert set(body) == {"traits"}
    assert len(set(body["traits"])) == len(body["traits"])
    return set(body["traits"])


def path_of(uuid: str) -> str:
    """The path of a provider's traits."""
    return f"/resource_providers/{uuid}/traits"


def body_of(seen: int, *names: str) -> dict[str, Any]:
    """The body of PUT for a provider's traits."""
    return {"traits": list(names), "resource_provider_generation": seen}


def test_all_traits_are_listed(api: Client) -> None:
    """The standard ones of os-traits, and the custom ones."""
    trait = custom_trait(api)
    names = names_of(api, "")
    assert trait in names
    assert STANDARD in names
    assert {name for name in names if not name.startswith("CUSTOM_")} == set(os_traits.get_traits())


@pytest.mark.parametrize("version", versions("1.6"))
def test_traits_can_be_found_by_name(api: Client, version: str) -> None:
    """`in:` returns those of the list that exist."""
    a, b, missing = custom_trait(api), custom_trait(api), new_custom_name()
    assert names_of(api, f"?name=in:{a},{STANDARD},{missing}", version) == {a, STANDARD}
    assert names_of(api, f"?name=in:{b}", version) == {b}
    assert names_of(api, f"?name=in:{missing}", version) == set()
    assert names_of(api, "?name=in:", version) == set()
    assert names_of(api, f"?name=in:%20{b}", version) == set()


@pytest.mark.parametrize("version", versions("1.6"))
def test_traits_can_be_found_by_prefix(api: Client, version: str) -> None:
    """`startswith:`; the empty prefix matches all."""
    stem = new_custom_name()
    family = {f"{stem}_A", f"{stem}_B"}
    for name in family:
        done(api.put(f"/traits/{name}", version=version), 201)
    assert names_of(api, f"?name=startswith:{stem}", version) == family
    assert names_of(api, f"?name=startswith:{stem}_A", version) == {f"{stem}_A"}
    assert names_of(api, f"?name=startswith:{stem}_C", version) == set()
    names = names_of(api, "?name=startswith:", version)
    assert family < names
    assert STANDARD in names


@pytest.mark.deliberately_different("the original's prefix is an SQL LIKE pattern")
@pytest.mark.parametrize(
    "prefix", ["{lower}", "CUSTOM%25", "%25", "_USTOM_"], ids=["case", "percent", "all", "one"]
)
def test_a_prefix_is_taken_literally(api: Client, prefix: str) -> None:
    """Letter case matters, and there are no wildcards."""
    name = custom_trait(api)
    assert names_of(api, f"?name=startswith:{prefix.format(lower=name.lower())}") == set()


@pytest.mark.parametrize("version", versions("1.6"))
def test_a_name_to_find_needs_an_operator(api: Client, version: str) -> None:
    """A value without a colon is refused; an unknown operator filters nothing."""
    for value in (STANDARD, "", "in", "startswith"):
        answer = api.get(f"/traits?name={value}", version=version)
        assert_refused(answer, 400, "Badly formatted name parameter", version=version)
    assert STANDARD in names_of(api, "?name=foo:X", version)


@pytest.mark.parametrize("version", versions("1.6"))
def test_traits_can_be_found_by_association(api: Client, version: str) -> None:
    """Those that a provider has, or those that none has; in any letter case."""
    used, unused = custom_trait(api), custom_trait(api)
    provider(api, traits=[used])
    both = f"name=in:{used},{unused}"
    for text in ("true", "True", "TRUE"):
        assert names_of(api, f"?{both}&associated={text}", version) == {used}
    for text in ("false", "False", "FALSE"):
        assert names_of(api, f"?{both}&associated={text}", version) == {unused}
    names = names_of(api, "?associated=true", version)
    assert used in names
    assert unused not in names


@pytest.mark.parametrize("value", ["", "1", "yes", "t", "true%20", "none"])
def test_an_association_is_true_or_false(api: Client, value: str) -> None:
    """Other values are refused."""
    assert_refused(api.get(f"/traits?associated={value}"), 400, "associated")


@pytest.mark.parametrize("query", ["?foo=1", "?names=in:A", "?NAME=in:A", "?required=A"])
def test_an_unknown_parameter_is_refused(api: Client, query: str) -> None:
    """As on every route with parameters."""
    assert_refused(api.get(f"/traits{query}"), 400, "Invalid query string parameters")


@pytest.mark.parametrize("version", versions("1.6"))
def test_a_trait_lives_and_dies(api: Client, version: str) -> None:
    """201, then 204, without bodies; 404 before and after."""
    name = new_custom_name()
    path = f"/traits/{name}"
    assert_refused(api.get(path, version=version), 404, "No such trait", version=version)
    for status in (201, 204):
        answer = api.put(path, version=version)
        assert (answer.status, answer.body) == (status, b"")
        assert answer.headers["Location"].endswith(path)
    answer = api.get(path, version=version)
    assert (answer.status, answer.body) == (204, b"")
    assert api.delete(path, version=version).status == 204
    assert_refused(api.get(path, version=version), 404, version=version)
    assert_refused(api.delete(path, version=version), 404, "No such trait", version=version)


def test_a_trait_is_found_by_its_exact_name(api: Client) -> None:
    """Letter case matters."""
    name = custom_trait(api)
    assert api.get(f"/traits/{name.lower()}").status == 404
    assert api.get(f"/traits/{STANDARD.lower()}").status == 404
    assert api.delete(f"/traits/{name.lower()}").status == 404


@pytest.mark.parametrize("name", [STANDARD, "NOT_CUSTOM", "CUSTOM_lower", "CUSTOM_"])
def test_only_custom_traits_can_be_made(api: Client, name: str) -> None:
    """A standard one is refused although it exists."""
    for version in versions("1.6"):
        answer = api.put(f"/traits/{name}", version=version)
        assert_refused(answer, 400, "The trait is invalid", version=version)


@pytest.mark.parametrize("version", versions("1.6"))
def test_standard_traits_stay(api: Client, version: str) -> None:
    """They cannot be deleted."""
    answer = api.delete(f"/traits/{STANDARD}", version=version)
    assert_refused(answer, 400, "Cannot delete standard trait", version=version)


@pytest.mark.parametrize("version", versions("1.6"))
def test_a_trait_in_use_stays(api: Client, version: str) -> None:
    """Until no provider has it."""
    trait = custom_trait(api)
    uuid = provider(api, traits=[trait])
    said = f"The trait {trait} is in use by a resource provider."
    assert_refused(api.delete(f"/traits/{trait}", version=version), 409, said, version=version)
    done(api.delete(path_of(uuid), version=version), 204)
    assert api.delete(f"/traits/{trait}", version=version).status == 204


@pytest.mark.parametrize("version", versions("1.6"))
def test_a_provider_has_a_set_of_traits(api: Client, version: str) -> None:
    """PUT replaces it; duplicates count once."""
    uuid, a, b = provider(api), custom_trait(api), custom_trait(api)
    read_back = done(api.get(path_of(uuid), version=version), 200).json
    assert read_back == {"traits": [], "resource_provider_generation": 0}
    for seen, names in enumerate([[a, STANDARD], [b], [b, a, b]]):
        body = body_of(seen, *names)
        answer = done(api.put(path_of(uuid), json=body, version=version), 200).json
        read_back = done(api.get(path_of(uuid), version=version), 200).json
        for shown in (answer, read_back):
            assert shown.keys() == {"traits", "resource_provider_generation"}
            assert shown["resource_provider_generation"] == seen + 1
            assert sorted(shown["traits"]) == sorted(set(names))
    done(api.put(path_of(uuid), json=body_of(3), version=version), 200)
    assert api.get(path_of(uuid), version=version).json["traits"] == []


@pytest.mark.parametrize("version", versions("1.6"))
def test_a_provider_can_lose_all_its_traits(api: Client, version: str) -> None:
    """DELETE needs no generation."""
    trait = custom_trait(api)
    uuid = provider(api, traits=[trait])
    answer = api.delete(path_of(uuid), version=version)
    assert (answer.status, answer.body) == (204, b"")
    assert api.get(path_of(uuid)).json["traits"] == []
    assert uuids_of(api.get(f"/resource_providers?required={trait}")) == set()


@pytest.mark.parametrize("version", versions("1.6"))
def test_an_old_generation_is_a_conflict(api: Client, version: str) -> None:
    """Before the names are checked; nothing changes."""
    uuid = provider(api, {"VCPU": 1}, traits=[STANDARD])
    body = body_of(1, new_custom_name())
    answer = api.put(path_of(uuid), json=body, version=version)
    said = "Please update the generation and try again."
    assert_refused(answer, 409, said, code=CONCURRENT_UPDATE, version=version)
    assert api.get(path_of(uuid)).json == body_of(2, STANDARD)


@pytest.mark.parametrize("version", versions("1.6"))
def test_unknown_traits_are_all_named(api: Client, version: str) -> None:
    """400, because they are in the body; nothing changes."""
    uuid, missing = provider(api), sorted([new_custom_name(), new_custom_name()])
    body = body_of(0, missing[0], STANDARD, missing[1])
    answer = api.put(path_of(uuid), json=body, version=version)
    assert_refused(answer, 400, "No such trait", *missing, version=version)
    assert api.get(path_of(uuid)).json == body_of(0)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "is a required property"),
        ({"traits": []}, "'resource_provider_generation' is a required property"),
        ({"resource_provider_generation": 0}, "'traits' is a required property"),
        ({"traits": [], "resource_provider_generation": 0, "x": 1}, "'x' was unexpected"),
        ({"traits": STANDARD, "resource_provider_generation": 0}, "is not of type 'array'"),
        ({"traits": [1], "resource_provider_generation": 0}, "is not of type 'string'"),
        ({"traits": [""], "resource_provider_generation": 0}, "Failed validating 'minLength'"),
        ({"traits": [], "resource_provider_generation": None}, "is not of type 'integer'"),
        ([STANDARD], "is not of type 'object'"),
    ],
    ids=repr,
)
def test_a_body_of_another_shape_is_refused(api: Client, body: Any, said: str) -> None:
    """Both fields are required, and no other is allowed."""
    answer = api.put(path_of(provider(api)), json=body)
    assert_refused(answer, 400, "JSON does not validate", said)


def test_an_unknown_provider_is_404(api: Client) -> None:
    """For GET, PUT and DELETE."""
    said = "No resource provider with uuid"
    assert_refused(api.get(path_of(NOWHERE)), 404, said)
    assert_refused(api.put(path_of(NOWHERE), json=body_of(0)), 404, said)
    assert_refused(api.delete(path_of(NOWHERE)), 404, said)


def test_a_trait_marks_one_provider_and_not_its_tree(api: Client) -> None:
    """Traits are not inherited."""
    trait = custom_trait(api)
    root = provider(api)
    child = provider(api, parent=root)
    put_traits(api, child, [trait])
    assert uuids_of(api.get(f"/resource_providers?required={trait}")) == {child}
    assert api.get(path_of(root)).json["traits"] == []


def test_a_deleted_provider_gives_its_traits_back(api: Client) -> None:
    """No provider has them any more, so they can be deleted."""
    trait = custom_trait(api)
    uuid = provider(api, traits=[trait], aggregates=[new_uuid()])
    done(api.delete(f"/resource_providers/{uuid}"), 204)
    assert names_of(api, f"?name=in:{trait}&associated=true") == set()
    assert api.delete(f"/traits/{trait}").status == 204
