# SPDX-License-Identifier: Apache-2.0
"""Writing allocations: the bodies, their effect, and what is refused.

Source: rest-api.md 10.3, 10.4, 1.9, 1.10, 1.14. Capacity and units are in
`test_allocations_capacity.py`, generations in `test_allocations_generations.py`.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.api.answers import CONCURRENT_UPDATE, assert_refused
from tests.api.claims import LEFT_OUT, claim_body, consumer, held, used
from tests.api.configured import serve
from tests.api.precedence import (
    ALLOWED,
    FORBIDDEN,
    JSON,
    TEXT,
    Ask,
    Row,
    assert_precedence,
)
from tests.api.versions import at_least, versions
from tests.api.worlds import NOWHERE, custom_class, generation, new_uuid, provider
from tests.client import Client

#: What a consumer written below 1.8 belongs to, by default (operations.md 3.2).
INCOMPLETE = "00000000-0000-0000-0000-000000000000"


@pytest.mark.parametrize("version", versions("1.0"))
def test_put_gives_a_consumer_what_it_asks_for(api: Client, version: str) -> None:
    """204 without body and caching headers; the body is a list up to 1.11, then an object."""
    host, pool = provider(api, {"VCPU": 4, "MEMORY_MB": 64}), provider(api, {"DISK_GB": 9})
    claims = {host: {"VCPU": 2, "MEMORY_MB": 32}, pool: {"DISK_GB": 5}}
    holder = new_uuid()

    answer = api.put(f"/allocations/{holder}", json=claim_body(version, claims), version=version)

    assert (answer.status, answer.body) == (204, b"")
    for absent in ("content-type", "last-modified", "cache-control", "location"):
        assert absent not in answer.headers
    assert held(api, holder) == claims
    shown = api.get(f"/allocations/{holder}").json
    owner = ("project", "user") if at_least(version, "1.8") else (INCOMPLETE, INCOMPLETE)
    assert (shown["project_id"], shown["user_id"]) == owner
    assert shown["consumer_generation"] == 1
    assert shown["consumer_type"] == ("INSTANCE" if at_least(version, "1.38") else "unknown")


def test_the_operator_says_whose_a_consumer_without_an_owner_is(tmp_path: Path) -> None:
    """Below 1.8 a body has neither project nor user; two options set them."""
    api = serve(
        tmp_path,
        "[placement]\nincomplete_consumer_project_id = no-project\n"
        "incomplete_consumer_user_id = no-user\n",
    )
    host, holder = provider(api, {"VCPU": 4}), new_uuid()
    body = claim_body("1.7", {host: {"VCPU": 2}})
    assert api.put(f"/allocations/{holder}", json=body, version="1.7").status == 204
    shown = api.get(f"/allocations/{holder}").json
    assert (shown["project_id"], shown["user_id"]) == ("no-project", "no-user")


@pytest.mark.parametrize("version", versions("1.0"))
def test_put_replaces_all_that_the_consumer_held(api: Client, version: str) -> None:
    """Allocations that are not in the body are removed."""
    old, new = provider(api, {"VCPU": 4, "MEMORY_MB": 9}), provider(api, {"VCPU": 4})
    holder = consumer(api, {old: {"VCPU": 4, "MEMORY_MB": 9}})
    body = claim_body(version, {new: {"VCPU": 3}}, consumer_generation=1)
    assert api.put(f"/allocations/{holder}", json=body, version=version).status == 204
    assert held(api, holder) == {new: {"VCPU": 3}}
    assert used(api, old) == {"VCPU": 0, "MEMORY_MB": 0}


@pytest.mark.parametrize("version", versions("1.13"))
def test_post_writes_several_consumers_at_once(api: Client, version: str) -> None:
    """Each has the body of PUT at this microversion."""
    host = provider(api, {"VCPU": 4})
    one, two = new_uuid(), new_uuid()
    body = {
        one: claim_body(version, {host: {"VCPU": 1}}),
        two: claim_body(version, {host: {"VCPU": 3}}),
    }
    answer = api.post("/allocations", json=body, version=version)
    assert (answer.status, answer.body) == (204, b"")
    assert "last-modified" not in answer.headers
    assert "cache-control" not in answer.headers
    assert held(api, one) == {host: {"VCPU": 1}}
    assert held(api, two) == {host: {"VCPU": 3}}


@pytest.mark.parametrize("version", versions("1.0", "1.12"))
def test_there_is_no_post_before_1_13(api: Client, version: str) -> None:
    """404, although the path is known."""
    answer = api.post("/allocations", json={}, version=version)
    assert_refused(answer, 404, version=version)


@pytest.mark.parametrize("version", versions("1.28"))
def test_put_with_nothing_removes_all_from_1_28(api: Client, version: str) -> None:
    """The consumer is deleted with its allocations, and can be created again."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 4}})
    body = claim_body(version, {}, consumer_generation=1)
    assert api.put(f"/allocations/{holder}", json=body, version=version).status == 204
    assert api.get(f"/allocations/{holder}").json == {"allocations": {}}
    body = claim_body(version, {host: {"VCPU": 1}}, consumer_generation=None)
    assert api.put(f"/allocations/{holder}", json=body, version=version).status == 204


@pytest.mark.parametrize("version", versions("1.13"))
def test_post_with_nothing_removes_all_from_1_13(api: Client, version: str) -> None:
    """Earlier than PUT does."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 4}})
    body = {holder: claim_body(version, {}, consumer_generation=1)}
    assert api.post("/allocations", json=body, version=version).status == 204
    assert api.get(f"/allocations/{holder}").json == {"allocations": {}}


@pytest.mark.parametrize("version", versions("1.0", "1.27"))
def test_put_with_nothing_is_refused_before_1_28(api: Client, version: str) -> None:
    """At least one provider is required."""
    answer = api.put(f"/allocations/{new_uuid()}", json=claim_body(version, {}), version=version)
    assert_refused(answer, 400, "JSON does not validate", version=version)


def test_of_a_provider_listed_twice_the_last_item_counts(api: Client) -> None:
    """In the list form, up to 1.11."""
    host = provider(api, {"VCPU": 4, "DISK_GB": 4})
    body = claim_body("1.11", {host: {"VCPU": 1}})
    body["allocations"] += claim_body("1.11", {host: {"DISK_GB": 2}})["allocations"]
    holder = new_uuid()
    assert api.put(f"/allocations/{holder}", json=body, version="1.11").status == 204
    assert held(api, holder) == {host: {"DISK_GB": 2}}


def test_a_write_before_1_8_takes_a_consumer_from_its_project(api: Client) -> None:
    """The configured ids replace the real ones."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    body = claim_body("1.7", {host: {"VCPU": 2}})
    assert api.put(f"/allocations/{holder}", json=body, version="1.7").status == 204
    shown = api.get(f"/allocations/{holder}").json
    assert (shown["project_id"], shown["user_id"]) == (INCOMPLETE, INCOMPLETE)


def test_a_write_before_1_38_leaves_the_type_alone(api: Client) -> None:
    """The type survives."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}}, consumer_type="VOLUME")
    body = claim_body("1.37", {host: {"VCPU": 2}}, consumer_generation=1)
    assert api.put(f"/allocations/{holder}", json=body, version="1.37").status == 204
    assert api.get(f"/allocations/{holder}").json["consumer_type"] == "VOLUME"


def test_a_write_moves_a_consumer_to_another_project_user_and_type(api: Client) -> None:
    """In the same transaction."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    body = claim_body(
        "1.39",
        {host: {"VCPU": 2}},
        project="p2",
        user="u2",
        consumer_type="VOLUME",
        consumer_generation=1,
    )
    assert api.put(f"/allocations/{holder}", json=body).status == 204
    shown = api.get(f"/allocations/{holder}").json
    assert (shown["project_id"], shown["user_id"]) == ("p2", "u2")
    assert shown["consumer_type"] == "VOLUME"


def test_a_write_that_fails_leaves_project_user_and_type(api: Client) -> None:
    """They are rolled back with the rest."""
    host = provider(api, {"VCPU": 4})
    holder = consumer(api, {host: {"VCPU": 1}})
    before = api.get(f"/allocations/{holder}").json
    body = claim_body(
        "1.39",
        {host: {"VCPU": 5}},
        project="p2",
        user="u2",
        consumer_type="VOLUME",
        consumer_generation=1,
    )
    assert api.put(f"/allocations/{holder}", json=body).status == 409
    assert api.get(f"/allocations/{holder}").json == before


@pytest.mark.parametrize("name", ["ALL", "UNKNOWN", "A", "_", "0", "A" * 255])
def test_a_type_is_any_name_of_capitals_digits_and_underscores(api: Client, name: str) -> None:
    """`ALL` and `UNKNOWN` are ordinary names."""
    holder = consumer(api, {provider(api, {"VCPU": 1}): {"VCPU": 1}}, consumer_type=name)
    assert api.get(f"/allocations/{holder}").json["consumer_type"] == name


@pytest.mark.parametrize("version", versions("1.12"))
def test_the_generation_of_a_provider_in_the_body_is_ignored(api: Client, version: str) -> None:
    """It is optional and may be stale."""
    host = provider(api, {"VCPU": 4})
    body = claim_body(version, {host: {"VCPU": 1}})
    body["allocations"][host]["generation"] = 12345
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert answer.status == 204


@pytest.mark.parametrize("version", versions("1.34"))
@pytest.mark.parametrize(
    "mappings",
    [
        {"": [NOWHERE]},
        {"": [NOWHERE, NOWHERE], "_NET": [NOWHERE.upper()]},
        {"1": [NOWHERE.replace("-", "")]},
        {"": "what stands under the empty string is free"},
        {"": []},
    ],
)
def test_mappings_are_accepted_and_ignored_from_1_34(
    api: Client, version: str, mappings: object
) -> None:
    """So a candidate can be sent as it was returned."""
    host = provider(api, {"VCPU": 4})
    body = claim_body(version, {host: {"VCPU": 1}}) | {"mappings": mappings}
    assert api.put(f"/allocations/{new_uuid()}", json=body, version=version).status == 204
    assert api.post("/allocations", json={new_uuid(): body}, version=version).status == 204


@pytest.mark.parametrize("mappings", [{}, None, [], {"1": []}, {"1": ["x"]}, {"1": NOWHERE}, "x"])
def test_mappings_of_a_wrong_form_are_refused(api: Client, mappings: object) -> None:
    """At least one key; lists of at least one uuid."""
    body = claim_body("1.39", {provider(api, {"VCPU": 4}): {"VCPU": 1}}) | {"mappings": mappings}
    answer = api.put(f"/allocations/{new_uuid()}", json=body)
    assert_refused(answer, 400, "JSON does not validate")


#: Every microversion with a key that it does not have yet, or never will.
UNEXPECTED = [
    (version, key)
    for key, since in {
        "project_id": "1.8",
        "user_id": "1.8",
        "consumer_generation": "1.28",
        "mappings": "1.34",
        "consumer_type": "1.38",
        "color": None,
    }.items()
    for version in versions("1.0")
    if since is None or not at_least(version, since)
]


@pytest.mark.parametrize(("version", "key"), UNEXPECTED)
def test_a_key_newer_than_the_microversion_is_refused(api: Client, version: str, key: str) -> None:
    """Unknown keys are refused at every level."""
    body = claim_body(version, {provider(api, {"VCPU": 4}): {"VCPU": 1}}) | {key: None}
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert_refused(
        answer,
        400,
        "Additional properties are not allowed",
        f"'{key}' was unexpected",
        version=version,
    )


@pytest.mark.parametrize("version", versions("1.8"))
def test_a_key_that_the_microversion_requires_is_missed(api: Client, version: str) -> None:
    """Each of them in turn."""
    claims = {provider(api, {"VCPU": 4}): {"VCPU": 1}}
    whole = claim_body(version, claims)
    for key in whole:
        body = {name: value for name, value in whole.items() if name != key}
        answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
        assert_refused(answer, 400, f"'{key}' is a required property", version=version)
        if at_least(version, "1.13"):
            answer = api.post("/allocations", json={new_uuid(): body}, version=version)
            assert_refused(answer, 400, f"'{key}' is a required property", version=version)


def broken_bodies() -> dict[str, dict[str, Any]]:
    """Changes to a valid body of 1.39 that make it invalid; HOST stands for the provider."""
    return {
        "project empty": {"project_id": ""},
        "project too long": {"project_id": "p" * 256},
        "project a number": {"project_id": 7},
        "project null": {"project_id": None},
        "user empty": {"user_id": ""},
        "user too long": {"user_id": "u" * 256},
        "generation a string": {"consumer_generation": "1"},
        "generation a fraction": {"consumer_generation": 1.5},
        "generation a boolean": {"consumer_generation": True},
        "type empty": {"consumer_type": ""},
        "type too long": {"consumer_type": "A" * 256},
        "type in small letters": {"consumer_type": "instance"},
        "type unknown": {"consumer_type": "unknown"},
        "type null": {"consumer_type": None},
        "allocations null": {"allocations": None},
        "allocations a list": {"allocations": []},
        "provider no uuid": {"allocations": {"x": {"resources": {"VCPU": 1}}}},
        "provider undashed": {"allocations": {"a" * 32: {"resources": {"VCPU": 1}}}},
        "resources missing": {"allocations": {"HOST": {}}},
        "resources empty": {"allocations": {"HOST": {"resources": {}}}},
        "resources a list": {"allocations": {"HOST": {"resources": ["VCPU"]}}},
        "class in small letters": {"allocations": {"HOST": {"resources": {"vcpu": 1}}}},
        "class empty": {"allocations": {"HOST": {"resources": {"": 1}}}},
        "amount zero": {"allocations": {"HOST": {"resources": {"VCPU": 0}}}},
        "amount negative": {"allocations": {"HOST": {"resources": {"VCPU": -1}}}},
        "amount a fraction": {"allocations": {"HOST": {"resources": {"VCPU": 1.5}}}},
        "amount a string": {"allocations": {"HOST": {"resources": {"VCPU": "1"}}}},
        "amount a boolean": {"allocations": {"HOST": {"resources": {"VCPU": True}}}},
        "amount null": {"allocations": {"HOST": {"resources": {"VCPU": None}}}},
        "inner generation a string": {
            "allocations": {"HOST": {"resources": {"VCPU": 1}, "generation": "1"}}
        },
        "inner key unknown": {"allocations": {"HOST": {"resources": {"VCPU": 1}, "color": 1}}},
    }


@pytest.mark.parametrize("change", broken_bodies())
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_body_that_breaks_the_schema_is_refused(api: Client, change: str, method: str) -> None:
    """400, and nothing is allocated."""
    host = provider(api, {"VCPU": 4})
    changed = broken_bodies()[change]
    if isinstance(allocations := changed.get("allocations"), dict):
        changed = {
            "allocations": {key.replace("HOST", host): value for key, value in allocations.items()}
        }
    body: Any = claim_body("1.39", {host: {"VCPU": 1}}) | changed
    path = "/allocations"
    if method == "PUT":
        path = f"/allocations/{new_uuid()}"
    else:
        body = {new_uuid(): body}
    assert_refused(api.request(method, path, json=body), 400, "JSON does not validate")
    assert used(api, host) == {"VCPU": 0}


@pytest.mark.parametrize(
    "body",
    [
        {"allocations": [{"resources": {"VCPU": 1}}]},
        {"allocations": [{"resource_provider": {"uuid": NOWHERE}}]},
        {"allocations": [{"resource_provider": {}, "resources": {"VCPU": 1}}]},
        {"allocations": [{"resource_provider": {"uuid": "x"}, "resources": {"VCPU": 1}}]},
        {"allocations": [{"resource_provider": {"uuid": NOWHERE}, "resources": {}}]},
        {"allocations": {NOWHERE: {"resources": {"VCPU": 1}}}},
        {},
    ],
)
def test_a_list_that_breaks_the_schema_is_refused(api: Client, body: object) -> None:
    """The form up to 1.11."""
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version="1.7")
    assert_refused(answer, 400, "JSON does not validate", version="1.7")


@pytest.mark.parametrize("body", [{}, [], None, {"x": {}}, {NOWHERE: {}}, {NOWHERE: None}])
def test_post_wants_at_least_one_consumer(api: Client, body: object) -> None:
    """Keys are uuids of 36 characters."""
    assert_refused(api.post("/allocations", json=body), 400, "JSON does not validate")


@pytest.mark.parametrize("version", ["1.0", "1.12", "1.28", "1.39"])
@pytest.mark.parametrize("name", ["not-a-uuid", "%20" + NOWHERE, NOWHERE[:-1], "%C3%9C"])
def test_put_wants_a_uuid_for_the_consumer(api: Client, version: str, name: str) -> None:
    """Any spelling of one."""
    body = claim_body(version, {provider(api, {"VCPU": 4}): {"VCPU": 1}})
    answer = api.put(f"/allocations/{name}", json=body, version=version)
    assert_refused(answer, 400, "Malformed consumer_uuid", version=version)


@pytest.mark.parametrize("spelling", ["{%s}", "urn:uuid:%s", "%s"])
def test_put_normalises_the_spelling_of_the_consumer(api: Client, spelling: str) -> None:
    """Stored in lower case with dashes."""
    holder, host = new_uuid(), provider(api, {"VCPU": 4})
    name = (spelling % holder.upper()).replace("{", "%7B").replace("}", "%7D")
    body = claim_body("1.39", {host: {"VCPU": 1}})
    assert api.put(f"/allocations/{name}", json=body).status == 204
    assert held(api, holder) == {host: {"VCPU": 1}}


@pytest.mark.deliberately_different("uuids are normalised to lower case and dashes (1.9)")
def test_post_normalises_the_spelling_of_consumer_and_provider(api: Client) -> None:
    """As PUT does with its path."""
    holder, host = new_uuid(), provider(api, {"VCPU": 4})
    body = {holder.upper(): claim_body("1.39", {host.upper(): {"VCPU": 1}})}
    assert api.post("/allocations", json=body).status == 204
    assert held(api, holder) == {host: {"VCPU": 1}}


@pytest.mark.parametrize("version", versions("1.0"))
def test_an_unknown_provider_is_refused(api: Client, version: str) -> None:
    """400, because it is in the body."""
    body = claim_body(version, {NOWHERE: {"VCPU": 1}})
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert_refused(
        answer,
        400,
        f"Allocation for resource provider '{NOWHERE}' that does not exist",
        version=version,
    )
    if at_least(version, "1.13"):
        answer = api.post("/allocations", json={new_uuid(): body}, version=version)
        assert_refused(
            answer,
            400,
            f"Allocation for resource provider '{NOWHERE}' that does not exist",
            version=version,
        )


@pytest.mark.parametrize("version", versions("1.0"))
def test_an_unknown_class_is_refused(api: Client, version: str) -> None:
    """400; PUT names the consumer."""
    body = claim_body(version, {provider(api, {"VCPU": 4}): {"CUSTOM_NOT_THERE": 1}})
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert_refused(
        answer,
        400,
        "Unable to allocate inventory for consumer",
        "No such resource class CUSTOM_NOT_THERE",
        version=version,
    )
    if at_least(version, "1.13"):
        answer = api.post("/allocations", json={new_uuid(): body}, version=version)
        assert_refused(
            answer, 400, "Unable to allocate inventory", "CUSTOM_NOT_THERE", version=version
        )


@pytest.mark.parametrize("version", versions("1.0"))
def test_a_class_that_the_provider_does_not_have_is_a_conflict(api: Client, version: str) -> None:
    """409, and the message names the class."""
    host = provider(api, {"VCPU": 4})
    body = claim_body(version, {host: {"VCPU": 1, "DISK_GB": 1}})
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version=version)
    assert_refused(answer, 409, "Inventory for 'DISK_GB' on", version=version)
    assert used(api, host) == {"VCPU": 0}


def test_numbers_with_a_zero_fraction_are_integers(api: Client) -> None:
    """As JSON Schema defines integers (1.5)."""
    host, holder = provider(api, {"VCPU": 4}), new_uuid()
    body = claim_body("1.39", {host: {"VCPU": 2}})
    body["allocations"][host]["resources"]["VCPU"] = 2.0
    assert api.put(f"/allocations/{holder}", json=body).status == 204
    assert held(api, holder) == {host: {"VCPU": 2}}


def test_post_is_all_or_nothing(api: Client) -> None:
    """If one consumer is refused, all are."""
    host = provider(api, {"VCPU": 4})
    before = generation(api, host)
    one, two = new_uuid(), new_uuid()
    body = {
        one: claim_body("1.39", {host: {"VCPU": 1}}),
        two: claim_body("1.39", {host: {"VCPU": 5}}),
    }
    assert api.post("/allocations", json=body).status == 409
    assert held(api, one) == held(api, two) == {}
    assert generation(api, host) == before


def test_post_lets_consumers_swap(api: Client) -> None:
    """All old allocations are removed before the new ones are checked."""
    left, right = provider(api, {"VCPU": 4}), provider(api, {"VCPU": 4})
    one, two = consumer(api, {left: {"VCPU": 4}}), consumer(api, {right: {"VCPU": 4}})
    body = {
        one: claim_body("1.39", {right: {"VCPU": 4}}, consumer_generation=1),
        two: claim_body("1.39", {left: {"VCPU": 4}}, consumer_generation=1),
    }
    assert api.post("/allocations", json=body).status == 204
    assert held(api, one) == {right: {"VCPU": 4}}
    assert held(api, two) == {left: {"VCPU": 4}}


def test_post_lets_one_consumer_hand_over_to_another(api: Client) -> None:
    """As in a migration: the old consumer is emptied, and a new one gets its allocations."""
    host = provider(api, {"VCPU": 4})
    old, new = consumer(api, {host: {"VCPU": 4}}), new_uuid()
    body = {
        new: claim_body("1.39", {host: {"VCPU": 4}}),
        old: claim_body("1.39", {}, consumer_generation=1),
    }
    assert api.post("/allocations", json=body).status == 204
    assert held(api, new) == {host: {"VCPU": 4}}
    assert held(api, old) == {}


def test_two_new_consumers_cannot_overshoot_together(api: Client) -> None:
    """The sums of a request are checked."""
    host = provider(api, {"VCPU": 4})
    body = {new_uuid(): claim_body("1.39", {host: {"VCPU": 3}}) for _ in range(2)}
    answer = api.post("/allocations", json=body)
    assert_refused(answer, 409, "The requested amount would exceed the capacity")
    assert used(api, host) == {"VCPU": 0}


@pytest.mark.parametrize("version", ["1.0", "1.8", "1.12", "1.28", "1.39"])
def test_faults_of_put_are_found_in_order(api: Client, version: str) -> None:
    """C P, the consumer's uuid, B, consumer generation, provider, class, then inventory."""
    host, other_class = provider(api, {"VCPU": 4}), custom_class(api)

    def body(claims: dict[str, dict[str, int]], seen: int | None = None) -> dict[str, Any]:
        return claim_body(version, claims, consumer_generation=seen)

    rows = [
        Row("nothing", {}, 415),
        Row("the content type", {"headers": JSON}, 403),
        Row("the role", {"headers": ALLOWED}, 400, "Malformed consumer_uuid"),
        Row("the consumer", {"path": f"/allocations/{new_uuid()}"}, 400, "Malformed JSON"),
        Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
    ]
    if at_least(version, "1.28"):
        stale = body({NOWHERE: {"CUSTOM_NOT_THERE": 9}}, seen=7)
        rows.append(
            Row("the schema", {"body": None, "json": stale}, 409, "consumer generation conflict")
        )
    unknown = [
        ({NOWHERE: {"CUSTOM_NOT_THERE": 9}}, 400, "that does not exist"),
        ({host: {"CUSTOM_NOT_THERE": 9}}, 400, "No such resource class"),
        ({host: {other_class: 9}}, 409, "Inventory for"),
        ({host: {"VCPU": 9}}, 409, "would exceed the capacity"),
        ({host: {"VCPU": 4}}, 204, ""),
    ]
    rows += [
        Row(
            f"down to {says!r}",
            {"path": f"/allocations/{new_uuid()}", "body": None, "json": body(claims)},
            status,
            says,
        )
        for claims, status, says in unknown
    ]
    ask = Ask(
        "PUT",
        "/allocations/nonsense",
        version=version,
        body=b"{",
        headers=FORBIDDEN | TEXT,
    )
    assert_precedence(api, ask, rows)


def test_faults_of_post_are_found_in_order(api: Client) -> None:
    """V C P B, all consumer generations, then provider, class, inventory."""
    host = provider(api, {"VCPU": 4})

    def body(claims: dict[str, dict[str, int]], seen: int | None = None) -> dict[str, Any]:
        return {
            new_uuid(): claim_body("1.39", claims),
            new_uuid(): claim_body("1.39", {host: {"VCPU": 1}}, consumer_generation=seen),
        }

    stale = body({NOWHERE: {"CUSTOM_NOT_THERE": 9}}, seen=7)
    assert_precedence(
        api,
        Ask("POST", "/allocations", version="1.12", body=b"{", headers=FORBIDDEN | TEXT),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.39"}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": stale}, 409, "consumer generation conflict"),
            Row(
                "the generation of the second",
                {"json": body({NOWHERE: {"CUSTOM_NOT_THERE": 9}})},
                400,
                "that does not exist",
            ),
            Row(
                "the provider",
                {"json": body({host: {"CUSTOM_NOT_THERE": 9}})},
                400,
                "No such resource class",
            ),
            Row("the class", {"json": body({host: {"DISK_GB": 9}})}, 409, "Inventory for"),
            Row("the inventory", {"json": body({host: {"VCPU": 9}})}, 409, "exceed the capacity"),
            Row("the amount", {"json": body({host: {"VCPU": 3}})}, 204),
        ],
    )


def test_a_stale_generation_carries_its_own_code(api: Client) -> None:
    """`placement.concurrent_update`: clients tell it from a full host by the code."""
    host = provider(api, {"VCPU": 4})
    body = claim_body("1.39", {host: {"VCPU": 1}}, consumer_generation=3)
    answer = api.put(f"/allocations/{new_uuid()}", json=body)
    assert_refused(
        answer,
        409,
        "consumer generation conflict",
        "expected null but got 3",
        code=CONCURRENT_UPDATE,
    )


@pytest.mark.parametrize("left_out", ["project_id", "user_id"])
def test_a_claim_belongs_to_somebody_from_1_8(api: Client, left_out: str) -> None:
    """Both project and user are required."""
    project = LEFT_OUT if left_out == "project_id" else "p"
    user = LEFT_OUT if left_out == "user_id" else "u"
    body = claim_body("1.8", {provider(api, {"VCPU": 1}): {"VCPU": 1}}, project=project, user=user)
    answer = api.put(f"/allocations/{new_uuid()}", json=body, version="1.8")
    assert_refused(answer, 400, f"'{left_out}' is a required property", version="1.8")
