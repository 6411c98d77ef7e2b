# SPDX-License-Identifier: Apache-2.0
"""The order of errors on the routes of providers and traits.

Each table sends a request with every fault at once; each row repairs one of them and names the next
response. Other routes have theirs in the tests of their resources.

Source: rest-api.md 1.14.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.precedence import ALLOWED, FORBIDDEN, JSON, TEXT, Ask, Row, assert_precedence
from tests.api.worlds import (
    NOWHERE,
    custom_trait,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
)
from tests.client import Client

PLAIN = {"Accept": "text/plain"}
TAKES_JSON = {"Accept": "application/json"}
NO_TOKEN = {"X-Auth-Token": None}

STALE = "resource provider generation conflict"
AGAIN = "Please update the generation and try again."


def test_the_layers_are_passed_from_the_outside_in(api: Client) -> None:
    """Token, version, the checks of the body, the path, the method, policy."""
    broken: dict[str, Any] = {"version": "1.x", "body": b"{}", "headers": NO_TOKEN}

    def answer(method: str, path: str) -> int:
        return api.request(method, path, **broken).status

    assert answer("PATCH", "/no/such/path") == 401
    broken["headers"] = FORBIDDEN
    assert answer("PATCH", "/no/such/path") == 400
    broken["version"] = "1.40"
    assert answer("PATCH", "/no/such/path") == 406
    broken["version"] = "1.39"
    assert answer("PATCH", "/no/such/path") == 400
    broken["headers"] = FORBIDDEN | TEXT
    assert answer("PATCH", "/no/such/path") == 404
    assert answer("PATCH", "/resource_providers") == 405
    assert answer("POST", "/resource_providers") == 415
    broken["headers"] = FORBIDDEN | JSON
    assert answer("POST", "/resource_providers") == 403
    broken["headers"] = ALLOWED | JSON
    assert answer("POST", "/resource_providers") == 400


def test_list_providers(api: Client) -> None:
    """A P B."""
    assert_precedence(
        api,
        Ask("GET", "/resource_providers?uuid=x", headers=FORBIDDEN | PLAIN),
        [
            Row("nothing", {}, 406),
            Row("accept", {"headers": TAKES_JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400),
            Row("the query", {"path": f"/resource_providers?uuid={NOWHERE}"}, 200),
        ],
    )


def test_make_a_provider(api: Client) -> None:
    """C P B, then the parent, then taken names."""
    name = new_name()
    uuid = provider(api, name=name)
    body = {"name": name, "parent_provider_uuid": NOWHERE}
    assert_precedence(
        api,
        Ask("POST", "/resource_providers", body=b"{", headers=FORBIDDEN | TEXT),
        [
            Row("nothing", {}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": body}, 400, "parent provider UUID"),
            Row("the parent", {"json": body | {"parent_provider_uuid": uuid}}, 409),
            Row("the name", {"json": {"name": new_name(), "parent_provider_uuid": uuid}}, 200),
        ],
    )


@pytest.mark.parametrize(
    "part", ["", "/inventories", "/inventories/VCPU", "/usages", "/allocations"]
)
def test_read_what_a_provider_has(api: Client, part: str) -> None:
    """A P L."""
    uuid = provider(api, {"VCPU": 1})
    assert_precedence(
        api,
        Ask("GET", f"/resource_providers/{NOWHERE}{part}", headers=FORBIDDEN | PLAIN),
        [
            Row("nothing", {}, 406),
            Row("accept", {"headers": TAKES_JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 404),
            Row("the provider", {"path": f"/resource_providers/{uuid}{part}"}, 200),
        ],
    )


def test_rename_a_provider(api: Client) -> None:
    """C P L B, then taken names."""
    taken = new_name()
    provider(api, name=taken)
    uuid = provider(api)
    assert_precedence(
        api,
        Ask("PUT", f"/resource_providers/{NOWHERE}", body=b"{", headers=FORBIDDEN | TEXT),
        [
            Row("nothing", {}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 404),
            Row("the provider", {"path": f"/resource_providers/{uuid}"}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": {"name": taken}}, 409),
            Row("the name", {"json": {"name": new_name()}}, 200),
        ],
    )


@pytest.mark.parametrize("part", ["", "/inventories/VCPU", "/inventories", "/traits"])
def test_delete_what_a_provider_has(api: Client, part: str) -> None:
    """P L; `Accept` is ignored."""
    uuid = provider(api, {"VCPU": 1})
    assert_precedence(
        api,
        Ask("DELETE", f"/resource_providers/{NOWHERE}{part}", headers=FORBIDDEN),
        [
            Row("nothing", {}, 403),
            Row("the role", {"headers": ALLOWED}, 404),
            Row("the provider", {"path": f"/resource_providers/{uuid}{part}"}, 204),
        ],
    )


def test_delete_all_inventories(api: Client) -> None:
    """V P L, where V is 405."""
    uuid = provider(api, {"VCPU": 1})
    assert_precedence(
        api,
        Ask(
            "DELETE", f"/resource_providers/{NOWHERE}/inventories", version="1.4", headers=FORBIDDEN
        ),
        [
            Row("nothing", {}, 405),
            Row("the microversion", {"version": "1.5"}, 403),
            Row("the role", {"headers": ALLOWED}, 404),
            Row("the provider", {"path": f"/resource_providers/{uuid}/inventories"}, 204),
        ],
    )


def test_add_an_inventory(api: Client) -> None:
    """C P L B, then capacity, the class, and whether the inventory exists."""
    uuid = provider(api, {"VCPU": 1})
    path = f"/resource_providers/{uuid}/inventories"
    missing = new_custom_name()
    body = {"resource_class": missing, "total": 1, "reserved": 2}
    assert_precedence(
        api,
        Ask(
            "POST",
            f"/resource_providers/{NOWHERE}/inventories",
            body=b"{",
            headers=FORBIDDEN | TEXT,
        ),
        [
            Row("nothing", {}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 404),
            Row("the provider", {"path": path}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": body}, 400, "greater than total"),
            Row("the capacity", {"json": body | {"reserved": 0}}, 400, missing),
            Row("the class", {"json": {"resource_class": "VCPU", "total": 1}}, 409),
            Row("that it was there", {"json": {"resource_class": "DISK_GB", "total": 1}}, 201),
        ],
    )


def test_replace_all_inventories(api: Client) -> None:
    """C P L B G, then capacity and the class."""
    uuid, missing = provider(api, {"VCPU": 1}), new_custom_name()
    path = f"/resource_providers/{uuid}/inventories"

    def body(seen: int, name: str, **record: int) -> dict[str, Any]:
        return {"inventories": {name: record}, "resource_provider_generation": seen}

    assert_precedence(
        api,
        Ask(
            "PUT", f"/resource_providers/{NOWHERE}/inventories", body=b"{", headers=FORBIDDEN | TEXT
        ),
        [
            Row("nothing", {}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 404),
            Row("the provider", {"path": path}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row(
                "the schema",
                {"body": None, "json": body(7, missing, total=1, reserved=2)},
                409,
                STALE,
            ),
            Row(
                "the generation",
                {"json": body(1, missing, total=1, reserved=2)},
                400,
                "greater than total",
            ),
            Row("the capacity", {"json": body(1, missing, total=1)}, 400, "Unknown resource class"),
            Row("the class", {"json": body(1, "VCPU", total=1)}, 200),
        ],
    )


def test_replace_one_inventory(api: Client) -> None:
    """C P L B G, then capacity, the class, and whether the inventory exists."""
    uuid, missing = provider(api, {"VCPU": 1}), new_custom_name()
    path = f"/resource_providers/{uuid}/inventories"
    body = {"resource_provider_generation": 7, "total": 1, "reserved": 2}
    assert_precedence(
        api,
        Ask(
            "PUT",
            f"/resource_providers/{NOWHERE}/inventories/{missing}",
            body=b"{",
            headers=FORBIDDEN | TEXT,
        ),
        [
            Row("nothing", {}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": f"{path}/{missing}"}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": body}, 409, STALE),
            Row(
                "the generation",
                {"json": body | {"resource_provider_generation": 1}},
                400,
                "greater than total",
            ),
            Row(
                "the capacity",
                {"json": {"resource_provider_generation": 1, "total": 1}},
                404,
                "No such resource class",
            ),
            Row("the class", {"path": f"{path}/DISK_GB"}, 400, "No inventory record"),
            Row("that it was not there", {"path": f"{path}/VCPU"}, 200),
        ],
    )


def test_read_aggregates(api: Client) -> None:
    """A V P L."""
    uuid = provider(api)
    assert_precedence(
        api,
        Ask(
            "GET",
            f"/resource_providers/{NOWHERE}/aggregates",
            version="1.0",
            headers=FORBIDDEN | PLAIN,
        ),
        [
            Row("nothing", {}, 406),
            Row("accept", {"headers": TAKES_JSON}, 404),
            Row("the microversion", {"version": "1.1"}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": f"/resource_providers/{uuid}/aggregates"}, 200),
        ],
    )


def test_replace_aggregates(api: Client) -> None:
    """C V P L B G."""
    uuid = provider(api, {"VCPU": 1})
    body = {"aggregates": [new_uuid()], "resource_provider_generation": 0}
    assert_precedence(
        api,
        Ask(
            "PUT",
            f"/resource_providers/{NOWHERE}/aggregates",
            version="1.0",
            body=b"{",
            headers=FORBIDDEN | TEXT,
        ),
        [
            Row("nothing", {}, 415),
            Row("the content type", {"headers": JSON}, 404),
            Row("the microversion", {"version": "1.19"}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row(
                "the provider",
                {"path": f"/resource_providers/{uuid}/aggregates"},
                400,
                "Malformed JSON",
            ),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": body}, 409, AGAIN),
            Row("the generation", {"json": body | {"resource_provider_generation": 1}}, 200),
        ],
    )


def test_list_traits(api: Client) -> None:
    """V A P B."""
    assert_precedence(
        api,
        Ask("GET", "/traits?name=x", version="1.5", headers=FORBIDDEN | PLAIN),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.6"}, 406),
            Row("accept", {"headers": TAKES_JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400),
            Row("the query", {"path": "/traits?name=in:x"}, 200),
        ],
    )


@pytest.mark.parametrize(("method", "success"), [("GET", 204), ("DELETE", 204)])
def test_ask_for_or_delete_a_trait(api: Client, method: str, success: int) -> None:
    """V P, then whether it exists; `Accept` is ignored."""
    assert_precedence(
        api,
        Ask(method, f"/traits/{new_custom_name()}", version="1.5", headers=FORBIDDEN),
        [
            Row("nothing", {}, 404, "The resource could not be found"),
            Row("the microversion", {"version": "1.6"}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No such trait"),
            Row("the trait", {"path": f"/traits/{custom_trait(api)}"}, success),
        ],
    )


def test_make_a_trait(api: Client) -> None:
    """V P, then the name."""
    assert_precedence(
        api,
        Ask("PUT", "/traits/NONSENSE", version="1.5", headers=FORBIDDEN),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.6"}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "The trait is invalid"),
            Row("the name", {"path": f"/traits/{new_custom_name()}"}, 201),
        ],
    )


def test_read_the_traits_of_a_provider(api: Client) -> None:
    """V A P L."""
    uuid = provider(api)
    assert_precedence(
        api,
        Ask(
            "GET",
            f"/resource_providers/{NOWHERE}/traits",
            version="1.5",
            headers=FORBIDDEN | PLAIN,
        ),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.6"}, 406),
            Row("accept", {"headers": TAKES_JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": f"/resource_providers/{uuid}/traits"}, 200),
        ],
    )


def test_replace_the_traits_of_a_provider(api: Client) -> None:
    """V C P B L G, the body before the provider; then the names."""
    uuid = provider(api, {"VCPU": 1})
    body = {"traits": [new_custom_name()], "resource_provider_generation": 0}
    good = {"traits": [custom_trait(api)], "resource_provider_generation": 1}
    assert_precedence(
        api,
        Ask(
            "PUT",
            f"/resource_providers/{NOWHERE}/traits",
            version="1.5",
            body=b"{",
            headers=FORBIDDEN | TEXT,
        ),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.6"}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": body}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": f"/resource_providers/{uuid}/traits"}, 409, AGAIN),
            Row(
                "the generation",
                {"json": body | {"resource_provider_generation": 1}},
                400,
                "No such trait",
            ),
            Row("the names", {"json": good}, 200),
        ],
    )


def test_delete_the_traits_of_a_provider(api: Client) -> None:
    """V P L."""
    uuid = provider(api)
    assert_precedence(
        api,
        Ask("DELETE", f"/resource_providers/{NOWHERE}/traits", version="1.5", headers=FORBIDDEN),
        [
            Row("nothing", {}, 404, "The resource could not be found"),
            Row("the microversion", {"version": "1.6"}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No resource provider with uuid"),
            Row("the provider", {"path": f"/resource_providers/{uuid}/traits"}, 204),
        ],
    )
