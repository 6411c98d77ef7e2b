# SPDX-License-Identifier: Apache-2.0
"""The aggregates of a provider.

Source: rest-api.md 6.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.answers import CONCURRENT_UPDATE, assert_refused
from tests.api.versions import at_least, versions
from tests.api.worlds import NOWHERE, done, generation, new_uuid, provider, uuids_of
from tests.client import Client


def path_of(uuid: str) -> str:
    """The path of a provider's aggregates."""
    return f"/resource_providers/{uuid}/aggregates"


def body_of(version: str, aggregates: list[Any], seen: int = 0) -> object:
    """The body of PUT at a version: a bare list below 1.19."""
    if at_least(version, "1.19"):
        return {"aggregates": aggregates, "resource_provider_generation": seen}
    return aggregates


def expected(version: str, aggregates: list[str], now: int) -> dict[str, Any]:
    """The expected response, with the generation from 1.19 on."""
    shown: dict[str, Any] = {"aggregates": aggregates}
    if at_least(version, "1.19"):
        shown["resource_provider_generation"] = now
    return shown


@pytest.mark.parametrize("version", versions("1.1"))
def test_a_provider_begins_in_no_aggregate(api: Client, version: str) -> None:
    """An empty list."""
    answer = api.get(path_of(provider(api)), version=version)
    assert done(answer, 200).json == expected(version, [], 0)


@pytest.mark.parametrize("version", versions("1.1"))
def test_aggregates_are_set_as_a_whole(api: Client, version: str) -> None:
    """The response repeats the list; an empty one removes all."""
    uuid, a, b, c = provider(api), new_uuid(), new_uuid(), new_uuid()
    counts = at_least(version, "1.19")
    for step, aggregates in enumerate([[b, a], [c], []]):
        body = body_of(version, aggregates, step)
        answer = api.put(path_of(uuid), json=body, version=version)
        now = step + 1 if counts else 0
        assert done(answer, 200).json == expected(version, aggregates, now)
        shown = done(api.get(path_of(uuid), version=version), 200).json
        assert sorted(shown.pop("aggregates")) == sorted(aggregates)
        assert shown == ({"resource_provider_generation": now} if counts else {})


@pytest.mark.parametrize("version", versions("1.1"))
def test_each_version_takes_its_own_form_only(api: Client, version: str) -> None:
    """A list below 1.19, an object from then on."""
    uuid = provider(api)
    other = "1.18" if at_least(version, "1.19") else "1.19"
    answer = api.put(path_of(uuid), json=body_of(other, [new_uuid()]), version=version)
    said = f"is not of type '{'object' if at_least(version, '1.19') else 'array'}'"
    assert_refused(answer, 400, "JSON does not validate", said, version=version)


@pytest.mark.parametrize(
    ("aggregates", "said"),
    [
        (["x"], "is not a 'uuid'"),
        ([""], "is not a 'uuid'"),
        ([None], "is not of type 'string'"),
        ([1], "is not of type 'string'"),
        ([NOWHERE, NOWHERE], "has non-unique elements"),
        ([NOWHERE, "x"], "is not a 'uuid'"),
    ],
    ids=repr,
)
def test_an_aggregate_is_a_uuid_and_stands_once(
    api: Client, aggregates: list[Any], said: str
) -> None:
    """Anything else, or a repeated uuid, is refused, and nothing changes."""
    for version in versions("1.1"):
        uuid = provider(api)
        answer = api.put(path_of(uuid), json=body_of(version, aggregates), version=version)
        assert_refused(answer, 400, said, version=version)
        assert api.get(path_of(uuid)).json["aggregates"] == []


@pytest.mark.parametrize(
    "body",
    [
        {"aggregates": []},
        {"resource_provider_generation": 0},
        {"aggregates": [], "resource_provider_generation": 0, "more": 1},
        {"aggregates": {}, "resource_provider_generation": 0},
        {"aggregates": [], "resource_provider_generation": None},
        {"aggregates": [], "resource_provider_generation": "0"},
    ],
    ids=repr,
)
def test_both_fields_are_needed_and_nothing_else(api: Client, body: Any) -> None:
    """As the schema of 1.19 says."""
    assert_refused(api.put(path_of(provider(api)), json=body), 400, "JSON does not validate")


@pytest.mark.parametrize("version", versions("1.19"))
def test_an_old_generation_is_a_conflict(api: Client, version: str) -> None:
    """Nothing changes."""
    uuid = provider(api, {"VCPU": 1})
    body = body_of(version, [new_uuid()], 0)
    answer = api.put(path_of(uuid), json=body, version=version)
    said = "Please update the generation and try again."
    assert_refused(answer, 409, said, code=CONCURRENT_UPDATE, version=version)
    assert api.get(path_of(uuid)).json == expected("1.39", [], 1)


@pytest.mark.parametrize("version", versions("1.1", "1.18"))
def test_below_1_19_generations_do_not_matter(api: Client, version: str) -> None:
    """They are neither checked nor incremented."""
    uuid = provider(api, {"VCPU": 1})
    done(api.put(path_of(uuid), json=[new_uuid()], version=version), 200)
    assert generation(api, uuid) == 1


@pytest.mark.parametrize("version", versions("1.1"))
def test_an_unknown_provider_is_404(api: Client, version: str) -> None:
    """Before the body is checked."""
    said = "No resource provider with uuid"
    assert_refused(api.get(path_of(NOWHERE), version=version), 404, said, version=version)
    answer = api.put(path_of(NOWHERE), json="nonsense", version=version)
    assert_refused(answer, 404, said, version=version)


def test_an_aggregate_is_shared_by_its_members(api: Client) -> None:
    """The first provider that joins creates it, and it needs none to remain."""
    aggregate = new_uuid()
    one, two = provider(api, aggregates=[aggregate]), provider(api, aggregates=[aggregate])
    query = f"/resource_providers?member_of={aggregate}"
    assert uuids_of(api.get(query)) == {one, two}
    done(api.put(path_of(one), json=body_of("1.39", [], 1)), 200)
    assert uuids_of(api.get(query)) == {two}
    done(api.put(path_of(two), json=body_of("1.39", [], 1)), 200)
    assert uuids_of(api.get(query)) == set()
