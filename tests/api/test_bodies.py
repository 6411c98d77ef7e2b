# SPDX-License-Identifier: Apache-2.0
"""How request bodies are read: their length, their type, their JSON.

Source: rest-api.md 1.5.
"""

from typing import Any

import pytest

from tests.api.answers import assert_refused
from tests.api.worlds import (
    NOBODY,
    custom_trait,
    generation,
    new_custom_name,
    new_name,
    new_uuid,
    provider,
)
from tests.client import Client
from tests.routes import OPERATIONS, Route

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


@pytest.mark.parametrize(
    ("route", "method"),
    OPERATIONS,
    ids=[f"{method} {route.template}" for route, method in OPERATIONS],
)
def test_a_body_without_a_type_is_400_on_every_route(
    api: Client, route: Route, method: str
) -> None:
    """Also on GET and DELETE, and before policy."""
    answer = api.request(method, route.path(), body=b"{}", headers=NOBODY)
    assert_refused(answer, 400, "content-type header required")


@pytest.mark.parametrize("method", ["GET", "PATCH"])
@pytest.mark.parametrize("path", ["/no/such/path", "/resource_providers"])
@pytest.mark.parametrize("content_type", [None, ""])
def test_a_body_without_a_type_beats_404_and_405(
    api: Client, method: str, path: str, content_type: str | None
) -> None:
    """The check comes before routing; an empty type counts as missing."""
    headers = {"Content-Type": content_type}
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
@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/xml", "Application/JSON", "application/json-patch+json", "json"],
)
def test_another_type_is_415(
    api: Client, method: str, path: str, version: str, content_type: str
) -> None:
    """The type is compared exactly, before policy."""
    headers = {**NOBODY, "Content-Type": content_type}
    path = path.format(uuid=new_uuid())
    answer = api.request(method, path, body=b"{}", headers=headers, version=version)
    said = f"The media type {content_type} is not supported, use application/json"
    assert_refused(answer, 415, said, version=version)


@pytest.mark.parametrize(("method", "path", "version"), WITH_BODY)
def test_an_absent_body_without_a_type_is_415(
    api: Client, method: str, path: str, version: str
) -> None:
    """Nothing was sent, so only the handler misses the type."""
    answer = api.request(method, path.format(uuid=new_uuid()), version=version)
    said = "The media type None is not supported, use application/json"
    assert_refused(answer, 415, said, version=version)


@pytest.mark.parametrize(
    "content_type",
    ["application/json; charset=utf-8", "application/json;charset=latin-1", "application/json;a=b"],
)
def test_parameters_of_the_type_are_ignored(api: Client, content_type: str) -> None:
    """A body is decoded as UTF-8, whatever its charset parameter."""
    name = new_name("höst")
    body = f'{{"name": "{name}"}}'.encode()
    answer = api.post("/resource_providers", body=body, headers={"Content-Type": content_type})
    assert (answer.status, answer.json["name"]) == (200, name)


@pytest.mark.parametrize("content_type", ["Application/JSON", "application/json ; charset=utf-8"])
def test_the_type_is_compared_letter_by_letter(api: Client, content_type: str) -> None:
    """OpenStack Placement accepts neither another letter case nor a blank before the parameters."""
    answer = api.post("/resource_providers", body=b"{}", headers={"Content-Type": content_type})
    assert_refused(answer, 415, "is not supported, use application/json")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"name": "x"',
        b'{"name": "x"} trailing',
        b"{'name': 'x'}",
        b'{"name": undefined}',
        b'{"name": "x",}',
        b'\xef\xbb\xbf{"name": "x"}',
        b'{"name": "\xff\xfe"}',
        b'{"name": "\xe9"}',
        b"\x00",
    ],
)
@pytest.mark.parametrize(("method", "path", "version"), WITH_BODY)
def test_what_is_not_json_is_400(
    api: Client, method: str, path: str, version: str, body: bytes
) -> None:
    """Empty, incomplete, followed by more text, with a byte order mark, or not UTF-8."""
    path = path.format(uuid=provider(api))
    answer = api.request(method, path, body=body, headers=JSON, version=version)
    assert_refused(answer, 400, "Malformed JSON:", version=version)


def test_blanks_around_the_body_are_fine(api: Client) -> None:
    """JSON may be surrounded by white space."""
    body = f' \r\n\t{{"name": "{new_name()}"}}\n '.encode()
    assert api.post("/resource_providers", body=body, headers=JSON).status == 200


def test_the_last_of_two_equal_keys_wins(api: Client) -> None:
    """Duplicate keys are accepted."""
    name = new_name()
    body = f'{{"name": "lost", "name": "{name}"}}'.encode()
    assert api.post("/resource_providers", body=body, headers=JSON).json["name"] == name


@pytest.mark.parametrize(("method", "path", "version"), WITH_BODY)
@pytest.mark.parametrize("body", [None, 1, "text", True, 1.5], ids=repr)
def test_a_body_that_is_no_object_or_list_is_400(
    api: Client, method: str, path: str, version: str, body: Any
) -> None:
    """Valid JSON of another form violates the schema."""
    path = path.format(uuid=provider(api))
    answer = api.request(method, path, json=body, version=version)
    assert_refused(answer, 400, "JSON does not validate", version=version)


@pytest.mark.parametrize("number", [b"1000.0", b"1e3", b"1000", b"10E2"])
def test_a_number_without_a_fraction_is_an_integer(api: Client, number: bytes) -> None:
    """JSON does not distinguish 1000.0 from 1000; an integer is stored."""
    uuid = provider(api)
    body = b'{"inventories": {"VCPU": {"total": %s}}, "resource_provider_generation": 0}' % number
    put = api.put(f"/resource_providers/{uuid}/inventories", body=body, headers=JSON)
    assert put.status == 200
    assert put.json["inventories"]["VCPU"]["total"] == 1000
    response = api.get(f"/resource_providers/{uuid}/inventories/VCPU")
    assert response.json["total"] == 1000
    assert '"total": 1000.0' not in response.text.replace(":", ": ")


def test_a_generation_may_be_written_with_a_fraction_of_zero(api: Client) -> None:
    """Generations are integers in the same sense."""
    uuid = provider(api)
    body = b'{"inventories": {}, "resource_provider_generation": 0.0}'
    assert api.put(f"/resource_providers/{uuid}/inventories", body=body, headers=JSON).status == 200


@pytest.mark.parametrize("value", [True, False, 1.5, "1", None, [1], {}], ids=repr)
def test_a_boolean_a_fraction_or_a_text_is_no_integer(api: Client, value: Any) -> None:
    """The schema requires an integer."""
    uuid = provider(api)
    body = {"inventories": {"VCPU": {"total": value}}, "resource_provider_generation": 0}
    answer = api.put(f"/resource_providers/{uuid}/inventories", json=body)
    assert_refused(answer, 400, "is not of type 'integer'")
    assert generation(api, uuid) == 0


NOT_500 = pytest.mark.deliberately_different("the original answers 500")


@pytest.mark.parametrize(
    "number",
    [
        b"Infinity",
        b"1e400",
        pytest.param(b"-Infinity", marks=NOT_500),
        pytest.param(b"NaN", marks=NOT_500),
    ],
)
def test_numbers_that_are_none_are_400(api: Client, number: bytes) -> None:
    """NaN and infinities can be parsed, but are refused as a ratio."""
    uuid = provider(api)
    body = (
        b'{"inventories": {"VCPU": {"total": 1, "allocation_ratio": %s}},'
        b' "resource_provider_generation": 0}' % number
    )
    answer = api.put(f"/resource_providers/{uuid}/inventories", body=body, headers=JSON)
    assert_refused(answer, 400)


@pytest.mark.parametrize("headers", [{"Content-Type": "text/plain"}, JSON])
def test_a_route_that_takes_no_body_ignores_one(api: Client, headers: dict[str, str]) -> None:
    """If it has a type, whatever it is, the body is ignored."""
    uuid, name = provider(api), new_custom_name()
    body = b"not json"
    assert api.put(f"/traits/{name}", body=body, headers=headers).status == 201
    assert api.get(f"/traits/{name}", body=body, headers=headers).status == 204
    assert api.delete(f"/traits/{name}", body=body, headers=headers).status == 204
    assert api.put(f"/resource_classes/{name}", body=body, headers=headers).status == 201
    assert api.delete(f"/resource_classes/{name}", body=body, headers=headers).status == 204
    assert api.get(f"/resource_providers/{uuid}", body=body, headers=headers).status == 200
    assert api.delete(f"/resource_providers/{uuid}", body=body, headers=headers).status == 204


def test_a_type_without_a_body_is_fine(api: Client) -> None:
    """Many clients send a content type with every request."""
    assert api.get(f"/traits/{custom_trait(api)}", headers=JSON).status == 204


@pytest.mark.in_process
def test_a_chunked_body_is_read_to_its_end(api: Client) -> None:
    """It has no length, as servers pass chunked bodies on."""
    name = new_name()
    body = f'{{"name": "{name}"}}'.encode()
    chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    answer = api.post("/resource_providers", body=body, headers={**chunked, **JSON})
    assert (answer.status, answer.json["name"]) == (200, name)


@pytest.mark.in_process
def test_a_chunked_body_without_a_type_is_415(api: Client) -> None:
    """Its length is unknown before routing, so the handler misses the type."""
    chunked = {"Content-Length": None, "Transfer-Encoding": "chunked"}
    assert_refused(api.post("/resource_providers", body=b"{}", headers=chunked), 415)
