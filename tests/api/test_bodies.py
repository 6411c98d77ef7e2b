# SPDX-License-Identifier: Apache-2.0
"""How request bodies are read: their length, their type, their JSON.

Source: rest-api.md 1.5.
"""

import pytest

from tests.api.answers import assert_refused
from tests.api.wire import Rule, rules
from tests.api.worlds import NOBODY, new_name, new_uuid, provider
from tests.client import Client
from tests.routes import OPERATIONS

JSON = {"Content-Type": "application/json"}

#: The operations that take a JSON body, each with the newest version at which it does.
WITH_BODY = [
    ("POST", "/resource_providers", "1.39"),
    ("PUT", "/resource_providers/{uuid}", "1.39"),
    ("POST", "/resource_providers/{uuid}/inventories", "1.39"),
    ("PUT", "/resource_providers/{uuid}/inventories", "1.39"),
    ("PUT", "/resource_providers/{uuid}/inventories/VCPU", "1.39"),
    ("PUT", "/resource_providers/{uuid}/aggregates", "1.39"),
    ("PUT", "/resource_providers/{uuid}/aggregates", "1.1"),
    ("PUT", "/resource_providers/{uuid}/traits", "1.39"),
    ("POST", "/resource_classes", "1.39"),
    ("PUT", "/resource_classes/CUSTOM_A", "1.6"),
    ("POST", "/allocations", "1.39"),
    ("PUT", "/allocations/{uuid}", "1.39"),
    ("PUT", "/allocations/{uuid}", "1.0"),
    ("POST", "/reshaper", "1.39"),
]
NOT_JSON = [b"", b"{", b'{"name": "x"} trailing', b'{"name": "\xff\xfe"}']
OTHER_TYPES = ["text/plain", "Application/JSON", "application/json ; a=b"]


@pytest.mark.parametrize("content_type", [None, ""])
def test_a_body_without_a_type_is_400_on_every_route(api: Client, content_type: str | None) -> None:
    """Also on GET and DELETE, before policy and routing; an empty type counts as missing."""
    asked = [(method, route.path()) for route, method in OPERATIONS]
    asked += [("PATCH", "/resource_providers"), ("GET", "/no/such/path"), ("PATCH", "/no/path")]
    headers = {**NOBODY, "Content-Type": content_type}
    for method, path in asked:
        answer = api.request(method, path, body=b"{}", headers=headers)
        assert_refused(answer, 400, "content-type header required")


@pytest.mark.in_process
@pytest.mark.parametrize("length", ["x", "1.5", "1e3", "0x10"])
@pytest.mark.parametrize("path", ["/no/such/path", "/resource_providers"])
def test_a_length_that_is_no_integer_is_400(api: Client, path: str, length: str) -> None:
    """Most servers refuse it themselves; otherwise the application does, before routing."""
    answer = api.post(path, body=b"{}", headers=JSON | {"Content-Length": length})
    assert_refused(answer, 400, "content-length header must be an integer")


@pytest.mark.parametrize(("method", "path", "version"), WITH_BODY)
def test_what_a_route_takes(api: Client, method: str, path: str, version: str) -> None:
    """The type exactly; then policy; then JSON; then an object or list."""
    path = path.format(uuid=new_uuid())
    answer = api.request(method, path, version=version)
    said = "The media type None is not supported, use application/json"
    assert_refused(answer, 415, said, version=version)
    for content_type in OTHER_TYPES:
        headers = {**NOBODY, "Content-Type": content_type}
        answer = api.request(method, path, body=b"{}", headers=headers, version=version)
        bare = content_type.partition(";")[0]
        said = f"The media type {bare} is not supported, use application/json"
        assert_refused(answer, 415, said, version=version)
    answer = api.request(method, path, body=b"{", headers={**NOBODY, **JSON}, version=version)
    assert_refused(answer, 403, version=version)
    path = path if "_providers/" not in path else path.replace(path.split("/")[2], provider(api))
    for body in NOT_JSON:
        answer = api.request(method, path, body=body, headers=JSON, version=version)
        assert_refused(answer, 400, "Malformed JSON:", version=version)
    for value in (None, "text"):
        answer = api.request(method, path, json=value, version=version)
        assert_refused(answer, 400, "JSON does not validate", version=version)


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "application/json;charset=latin-1"],
)
def test_parameters_of_the_type_are_ignored(api: Client, content_type: str) -> None:
    """A body is decoded as UTF-8, whatever its charset parameter; the last of two keys wins."""
    name = new_name("höst")
    body = f' \r\n\t{{"name": "lost", "name": "{name}"}}\n '.encode()
    answer = api.post("/resource_providers", body=body, headers={"Content-Type": content_type})
    assert (answer.status, answer.json["name"]) == (200, name)


@pytest.mark.in_process
def test_a_chunked_body_is_read_to_its_end(api: Client) -> None:
    """It has no length, as servers pass chunked bodies on; without a type the handler misses it."""
    name = new_name()
    body = f'{{"name": "{name}"}}'.encode()
    chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    answer = api.post("/resource_providers", body=body, headers={**chunked, **JSON})
    assert (answer.status, answer.json["name"]) == (200, name)
    assert_refused(api.post("/resource_providers", body=b"{}", headers=chunked), 415)


@rules(
    """
    a number without a fraction is an integer
        > Content-Type: application/json
        PUT $host/inventories b'{"inventories": {"VCPU": {"total": $1}},
            "resource_provider_generation": 0.0}'
        200 {inventories: {VCPU: {total: 1000, ...}}, seen: 1}
        GET $host/inventories/VCPU => 200 b'"total":1000,'
        || 1000.0 || 1e3 || 1000 || 10E2
    a boolean, a fraction or a text is no integer
        PUT $host/inventories {inventories: {VCPU: {total: $1}}, seen: 0}
        400 is not of type 'integer'
        || true || false || 1.5 || "1" || null || [1] || {}
    numbers that are none are 400
        > Content-Type: application/json
        PUT $host/inventories b'{"inventories": {"VCPU": {"total": 1, "allocation_ratio": $1}},
            "resource_provider_generation": 0}'
        400
        || Infinity || 1e400
    a route that takes no body ignores one, if it has a type
        > Content-Type: $1
        PUT /traits/$CUSTOM_A b'not json' => 201
        > Content-Type: $1
        GET /traits/$CUSTOM_A b'not json' => 204
        > Content-Type: $1
        DELETE /traits/$CUSTOM_A b'not json' => 204
        > Content-Type: $1
        PUT /resource_classes/$CUSTOM_A b'not json' => 201
        > Content-Type: $1
        DELETE /resource_classes/$CUSTOM_A b'not json' => 204
        > Content-Type: $1
        GET $host b'not json' => 200
        > Content-Type: $1
        DELETE $host b'not json' => 204
        || text/plain || application/json
    """,
    world="host",
)
def test_numbers_and_routes_without_a_body(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)


@pytest.mark.deliberately_different("the original answers 500")
@rules(
    """
    numbers that are none are 400
        > Content-Type: application/json
        PUT $host/inventories b'{"inventories": {"VCPU": {"total": 1, "allocation_ratio": $1}},
            "resource_provider_generation": 0}'
        400
        || -Infinity || NaN
    """,
    world="host",
)
def test_numbers_that_the_original_fails_at(rule: Rule, wire: Client) -> None:
    """The rows of the table."""
    rule.check(wire)
