# SPDX-License-Identifier: Apache-2.0
"""`Last-Modified` and `Cache-Control`, from microversion 1.15 on.

Source: rest-api.md 1.8.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import pytest

from tests.api.answers import assert_refused
from tests.api.claims import consumer
from tests.api.versions import at_least, versions
from tests.api.worlds import (
    NOWHERE,
    custom_trait,
    generation,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
    put_inventories,
)
from tests.client import Client, Response
from tests.routes import VERSIONS

#: How far two clocks or two steps of one test may be apart.
LEEWAY = timedelta(seconds=5)


def last_modified(answer: Response) -> datetime:
    """The time in the header, which must be an HTTP date."""
    text = answer.headers["Last-Modified"]
    assert text.endswith(" GMT")
    return parsedate_to_datetime(text)


def assert_now(answer: Response) -> None:
    """The date is within the duration of this test."""
    assert abs(last_modified(answer) - datetime.now(UTC)) < LEEWAY
    assert answer.headers["Cache-Control"] == "no-cache"


def inventories(api: Client, uuid: str) -> dict[str, object]:
    """A body for PUT inventories with one class."""
    seen = generation(api, uuid)
    return {"inventories": {"VCPU": {"total": 1}}, "resource_provider_generation": seen}


Ask = Callable[[Client, str, str], Response]


def put_aggregates(api: Client, uuid: str, version: str) -> Response:
    """PUT aggregates in the form of a version."""
    body: object = []
    if at_least(version, "1.19"):
        body = {"aggregates": [], "resource_provider_generation": generation(api, uuid)}
    return api.put(f"/resource_providers/{uuid}/aggregates", json=body, version=version)


def put_traits(api: Client, uuid: str, version: str) -> Response:
    """PUT the traits of a provider."""
    body = {"traits": [], "resource_provider_generation": generation(api, uuid)}
    return api.put(f"/resource_providers/{uuid}/traits", json=body, version=version)


def put_inventory(api: Client, uuid: str, version: str) -> Response:
    """PUT one inventory."""
    body = {"total": 2, "resource_provider_generation": generation(api, uuid)}
    return api.put(f"/resource_providers/{uuid}/inventories/VCPU", json=body, version=version)


def post_inventory(api: Client, uuid: str, version: str) -> Response:
    """POST another inventory."""
    body = {"total": 2, "resource_class": "DISK_GB"}
    return api.post(f"/resource_providers/{uuid}/inventories", json=body, version=version)


#: The answers that carry both headers, by name; all that they show was made during the test.
DATED: dict[str, tuple[str, Ask]] = {
    "GET /": ("1.0", lambda api, _, v: api.get("/", version=v)),
    "GET provider": ("1.0", lambda api, u, v: api.get(f"/resource_providers/{u}", version=v)),
    "GET providers": (
        "1.0",
        lambda api, u, v: api.get(f"/resource_providers?uuid={u}", version=v),
    ),
    "GET no providers": (
        "1.0",
        lambda api, _, v: api.get(f"/resource_providers?uuid={NOWHERE}", version=v),
    ),
    "GET inventories": (
        "1.0",
        lambda api, u, v: api.get(f"/resource_providers/{u}/inventories", version=v),
    ),
    "PUT inventories": (
        "1.0",
        lambda api, u, v: api.put(
            f"/resource_providers/{u}/inventories", json=inventories(api, u), version=v
        ),
    ),
    "GET inventory": (
        "1.0",
        lambda api, u, v: api.get(f"/resource_providers/{u}/inventories/VCPU", version=v),
    ),
    "PUT inventory": ("1.0", put_inventory),
    "POST inventory": ("1.0", post_inventory),
    "GET aggregates": (
        "1.1",
        lambda api, u, v: api.get(f"/resource_providers/{u}/aggregates", version=v),
    ),
    "PUT aggregates": ("1.1", put_aggregates),
    "GET provider usages": (
        "1.0",
        lambda api, u, v: api.get(f"/resource_providers/{u}/usages", version=v),
    ),
    "GET provider allocations": (
        "1.0",
        lambda api, u, v: api.get(f"/resource_providers/{u}/allocations", version=v),
    ),
    "GET provider traits": (
        "1.6",
        lambda api, u, v: api.get(f"/resource_providers/{u}/traits", version=v),
    ),
    "PUT provider traits": ("1.6", put_traits),
    "GET no traits": ("1.6", lambda api, _, v: api.get("/traits?name=in:", version=v)),
    "GET one trait": ("1.6", lambda api, _, v: api.get(f"/traits/{custom_trait(api)}", version=v)),
    "PUT trait": ("1.6", lambda api, _, v: api.put(f"/traits/{new_custom_name()}", version=v)),
    "GET project usages": ("1.9", lambda api, _, v: api.get("/usages?project_id=x", version=v)),
    "GET no allocations": ("1.0", lambda api, _, v: api.get(f"/allocations/{NOWHERE}", version=v)),
}


@pytest.mark.parametrize("kind", DATED)
def test_what_is_read_or_written_is_dated_from_1_15(api: Client, kind: str) -> None:
    """Both headers from 1.15 on, neither below."""
    first, ask = DATED[kind]
    for version in versions(first):
        answer = ask(api, provider(api, {"VCPU": 1}), version)
        assert 200 <= answer.status < 300
        if at_least(version, "1.15"):
            assert_now(answer)
        else:
            assert_undated(answer)


def assert_undated(answer: Response) -> None:
    """Neither header is present."""
    assert "Last-Modified" not in answer.headers
    assert "Cache-Control" not in answer.headers


@pytest.mark.parametrize("version", VERSIONS)
def test_a_created_provider_is_dated_when_it_is_shown(api: Client, version: str) -> None:
    """From 1.20 on, when the response has a body."""
    answer = api.post("/resource_providers", json={"name": new_name()}, version=version)
    if at_least(version, "1.20"):
        assert_now(answer)
    else:
        assert_undated(answer)


def test_a_provider_without_inventory_has_no_date_for_it(api: Client) -> None:
    """Nothing was modified, but caches must not keep the response."""
    uuid = provider(api)
    answer = api.get(f"/resource_providers/{uuid}/inventories")
    assert "Last-Modified" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-cache"
    body = {"inventories": {}, "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{uuid}/inventories", json=body)
    assert "Last-Modified" not in answer.headers
    assert answer.headers["Cache-Control"] == "no-cache"


def test_a_renamed_provider_may_not_be_kept_by_caches(api: Client) -> None:
    """The specification leaves the date of `PUT /resource_providers/{uuid}` open, not
    `Cache-Control`."""
    uuid = provider(api)
    answer = api.put(f"/resource_providers/{uuid}", json={"name": new_name()})
    assert answer.headers["Cache-Control"] == "no-cache"


def test_standard_names_are_older_than_the_test(api: Client) -> None:
    """Their date is that of their creation."""
    for path in ("/traits/HW_CPU_X86_AVX2", "/resource_classes/VCPU"):
        answer = api.get(path)
        assert last_modified(answer) <= datetime.now(UTC)
        assert answer.headers["Cache-Control"] == "no-cache"


def test_a_trait_keeps_the_date_of_its_creation(api: Client) -> None:
    """GET, and a PUT that finds the trait, return the time of the PUT that created it."""
    name = new_custom_name()
    made = last_modified(api.put(f"/traits/{name}"))
    assert last_modified(api.put(f"/traits/{name}")) == made
    assert last_modified(api.get(f"/traits/{name}")) == made


def test_a_list_has_the_date_of_its_newest_member(api: Client) -> None:
    """Resource classes, after one was created."""
    name = new_custom_name()
    assert api.put(f"/resource_classes/{name}").status == 201
    assert_now(api.get("/resource_classes"))
    assert_now(api.get(f"/resource_classes/{name}"))


def test_every_change_of_generation_touches_the_provider(api: Client) -> None:
    """A provider is never older than its newest inventory."""
    uuid = provider(api)
    put_inventories(api, uuid, {"VCPU": 1})
    shown = last_modified(api.get(f"/resource_providers/{uuid}"))
    assert shown >= last_modified(api.get(f"/resource_providers/{uuid}/inventories"))


def test_allocations_have_the_date_of_the_claim(api: Client) -> None:
    """For the consumer and for the provider."""
    uuid = provider(api, {"VCPU": 1})
    holder = consumer(api, {uuid: {"VCPU": 1}})
    assert_now(api.get(f"/allocations/{holder}"))
    assert_now(api.get(f"/resource_providers/{uuid}/allocations"))


def test_deletes_are_undated(api: Client) -> None:
    """DELETE has neither header."""
    uuid = provider(api, {"VCPU": 1, "DISK_GB": 1}, traits=[])
    holder = consumer(api, {uuid: {"VCPU": 1}})
    trait = custom_trait(api)
    for path in (
        f"/allocations/{holder}",
        f"/resource_providers/{uuid}/inventories/VCPU",
        f"/resource_providers/{uuid}/inventories",
        f"/resource_providers/{uuid}/traits",
        f"/resource_providers/{uuid}",
        f"/traits/{trait}",
    ):
        answer = api.delete(path)
        assert answer.status == 204
        assert_undated(answer)


def test_refusals_are_undated(api: Client) -> None:
    """An error has neither header."""
    answer = api.get(f"/resource_providers/{NOWHERE}")
    assert_refused(answer, 404)
    assert_undated(answer)
    assert_undated(api.get(f"/traits/{new_custom_name()}"))
    assert_undated(api.post("/resource_providers", json={}))


def test_writes_of_definitions_and_claims_are_undated(api: Client) -> None:
    """For resource classes, allocations and the reshaper, at any version."""
    uuid, name = provider(api, {"VCPU": 2}), new_custom_name()
    body = {
        "allocations": {uuid: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": None,
        "consumer_type": "INSTANCE",
    }
    inventory = {
        "inventories": {"VCPU": {"total": 3}},
        "resource_provider_generation": generation(api, uuid),
    }
    for answer in (
        api.post("/reshaper", json={"inventories": {uuid: inventory}, "allocations": {}}),
        api.put(f"/resource_classes/{name}"),
        api.put(f"/resource_classes/{name}"),
        api.post("/resource_classes", json={"name": new_custom_name()}),
        api.put(f"/allocations/{new_uuid()}", json=body),
        api.post("/allocations", json={new_uuid(): body}),
    ):
        assert answer.status in (201, 204), answer
        assert_undated(answer)
