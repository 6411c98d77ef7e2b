# SPDX-License-Identifier: Apache-2.0
"""Resource classes.

Source: rest-api.md section 8, and 1.5, 1.8, 1.10, 1.14 where they concern classes.
"""

import os_resource_classes
import pytest

from tests.api.answers import assert_refused
from tests.api.precedence import (
    ALLOWED,
    FORBIDDEN,
    JSON,
    TEXT,
    Ask,
    Row,
    assert_precedence,
)
from tests.api.versions import versions
from tests.api.worlds import custom_class, new_custom_name, provider, put_inventories
from tests.client import Client

#: Names that no custom class may have, as they stand in a path.
BAD_NAMES = [
    "VCPU",
    "CUSTOM_",
    "CUSTOM_lower",
    "CUSTOM_A-B",
    "custom_A",
    "MY_CLASS",
    "CUSTOM_%C3%84",
    "CUSTOM_A%20",
    "CUSTOM_" + "A" * 249,
]


def represented(name: str) -> dict[str, object]:
    """The representation of a class."""
    return {"name": name, "links": [{"rel": "self", "href": f"/resource_classes/{name}"}]}


@pytest.mark.parametrize("version", versions("1.2"))
def test_a_class_is_shown_with_a_link_to_itself(api: Client, version: str) -> None:
    """The same at every microversion."""
    answer = api.get("/resource_classes/VCPU", version=version)
    assert answer.status == 200
    assert answer.json == represented("VCPU")


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/resource_classes"),
        ("POST", "/resource_classes"),
        ("GET", "/resource_classes/VCPU"),
        ("PUT", "/resource_classes/CUSTOM_A"),
        ("DELETE", "/resource_classes/CUSTOM_A"),
    ],
)
def test_there_are_no_classes_before_1_2(api: Client, version: str, method: str, path: str) -> None:
    """The routes came with 1.2."""
    answer = api.request(method, path, json={"name": "CUSTOM_A"}, version=version)
    assert_refused(answer, 404, version=version)


def test_the_standard_classes_come_first_in_the_order_of_their_ids(api: Client) -> None:
    """In the library's order; custom classes follow."""
    custom = custom_class(api)
    answer = api.get("/resource_classes")
    names = [entry["name"] for entry in answer.json["resource_classes"]]
    standard = os_resource_classes.STANDARDS
    assert names[: len(standard)] == standard
    assert custom in names[len(standard) :]
    assert answer.json["resource_classes"][0] == represented("VCPU")


def test_a_query_on_the_list_is_ignored(api: Client) -> None:
    """The route has no parameters (1.3)."""
    assert api.get("/resource_classes?foo=1").status == 200


@pytest.mark.parametrize("version", versions("1.2"))
def test_post_creates_a_class_and_answers_with_its_place_only(api: Client, version: str) -> None:
    """201 with a Location and without a body, also after 1.7."""
    name = new_custom_name()
    answer = api.post("/resource_classes", json={"name": name}, version=version)
    assert answer.status == 201
    assert answer.headers["location"].endswith(f"/resource_classes/{name}")
    assert answer.body == b""
    assert "content-type" not in answer.headers
    assert "last-modified" not in answer.headers
    assert "cache-control" not in answer.headers
    assert api.get(f"/resource_classes/{name}", version=version).json == represented(name)


def test_post_of_a_class_that_exists_is_a_conflict(api: Client) -> None:
    """409 without a code of its own."""
    name = custom_class(api)
    answer = api.post("/resource_classes", json={"name": name})
    assert_refused(answer, 409, "Conflicting resource class already exists")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "'name' is a required property"),
        ({"name": "VCPU"}, "Failed validating 'pattern'"),
        ({"name": "custom_a"}, "Failed validating 'pattern'"),
        ({"name": "CUSTOM_"}, "Failed validating 'pattern'"),
        ({"name": "CUSTOM_A B"}, "Failed validating 'pattern'"),
        ({"name": ""}, "JSON does not validate"),
        ({"name": "CUSTOM_" + "A" * 249}, "Failed validating 'maxLength'"),
        ({"name": 7}, "is not of type 'string'"),
        ({"name": None}, "is not of type 'string'"),
        ({"name": "CUSTOM_A", "color": "red"}, "Additional properties are not allowed"),
        ({"name": "CUSTOM_A", "color": "red"}, "'color' was unexpected"),
        (["CUSTOM_A"], "is not of type 'object'"),
        ("CUSTOM_A", "is not of type 'object'"),
        (None, "is not of type 'object'"),
    ],
)
def test_post_refuses_a_body_that_names_no_custom_class(
    api: Client, body: object, says: str
) -> None:
    """The message says which rule of the schema it violates."""
    answer = api.post("/resource_classes", json=body)
    assert_refused(answer, 400, "JSON does not validate", says)


@pytest.mark.deliberately_different("a name that ends in a newline is a mismatch (1.5, D)")
def test_a_name_that_ends_in_a_newline_is_no_name(api: Client) -> None:
    """`$` must not match before a final newline."""
    name = new_custom_name() + "\n"
    assert_refused(api.post("/resource_classes", json={"name": name}), 400)


def test_the_longest_name_has_255_characters(api: Client) -> None:
    """Longer ones are refused, see above."""
    name = new_custom_name().ljust(255, "Z")
    assert api.post("/resource_classes", json={"name": name}).status == 201
    assert api.get(f"/resource_classes/{name}").status == 200


@pytest.mark.parametrize("name", ["CUSTOM_NOT_THERE", "vcpu", "VCPU%20", "%C3%9C", "VCPU.json"])
@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_class_is_not_found(api: Client, method: str, name: str) -> None:
    """Names are compared exactly."""
    answer = api.request(method, f"/resource_classes/{name}")
    assert_refused(answer, 404, "No such resource class")


@pytest.mark.parametrize("version", versions("1.2", "1.6"))
def test_put_renames_a_class_before_1_7(api: Client, version: str) -> None:
    """The response is the class with its new name; the old name is unknown."""
    old, new = custom_class(api), new_custom_name()
    answer = api.put(f"/resource_classes/{old}", json={"name": new}, version=version)
    assert answer.status == 200
    assert answer.json == represented(new)
    assert api.get(f"/resource_classes/{old}").status == 404
    assert api.get(f"/resource_classes/{new}").status == 200


def test_renaming_a_class_keeps_the_inventories_of_it(api: Client) -> None:
    """Only their class's name changes."""
    old, new = custom_class(api), new_custom_name()
    host = provider(api, {old: 5})
    api.put(f"/resource_classes/{old}", json={"name": new}, version="1.6")
    inventories = api.get(f"/resource_providers/{host}/inventories").json["inventories"]
    assert list(inventories) == [new]


def test_renaming_a_class_to_its_own_name_is_fine(api: Client) -> None:
    """It changes nothing."""
    name = custom_class(api)
    answer = api.put(f"/resource_classes/{name}", json={"name": name}, version="1.2")
    assert (answer.status, answer.json) == (200, represented(name))


def test_renaming_a_class_to_the_name_of_another_is_a_conflict(api: Client) -> None:
    """Names are unique."""
    name, other = custom_class(api), custom_class(api)
    answer = api.put(f"/resource_classes/{name}", json={"name": other}, version="1.6")
    assert_refused(answer, 409, "Resource class already exists", version="1.6")


def test_a_standard_class_cannot_be_renamed(api: Client) -> None:
    """400, and the message names the class."""
    answer = api.put("/resource_classes/VCPU", json={"name": new_custom_name()}, version="1.6")
    assert_refused(answer, 400, "Cannot update standard resource class VCPU", version="1.6")


def test_a_class_cannot_be_renamed_to_a_standard_one(api: Client) -> None:
    """The schema requires a custom name."""
    name = custom_class(api)
    answer = api.put(f"/resource_classes/{name}", json={"name": "VCPU"}, version="1.6")
    assert_refused(answer, 400, "JSON does not validate", version="1.6")


@pytest.mark.parametrize("version", versions("1.7"))
def test_put_creates_or_confirms_a_class_from_1_7(api: Client, version: str) -> None:
    """201 the first time, then 204; both with a Location and without a body."""
    name = new_custom_name()
    for status in (201, 204):
        answer = api.put(f"/resource_classes/{name}", version=version)
        assert answer.status == status
        assert answer.headers["location"].endswith(f"/resource_classes/{name}")
        assert answer.body == b""
        assert "last-modified" not in answer.headers
        assert "cache-control" not in answer.headers


def test_put_ignores_a_body_of_any_type_from_1_7(api: Client) -> None:
    """The route takes no body (1.5)."""
    answer = api.put(
        f"/resource_classes/{new_custom_name()}",
        body=b"\xffnot json",
        headers={"Content-Type": "text/plain"},
    )
    assert answer.status == 201


@pytest.mark.parametrize("name", [*BAD_NAMES, "CUSTOM_%22", "CUSTOM_%5C"])
def test_put_refuses_a_name_that_is_not_custom_from_1_7(api: Client, name: str) -> None:
    """Also for standard classes that exist."""
    assert_refused(api.put(f"/resource_classes/{name}"), 400)


def test_a_class_is_deleted(api: Client) -> None:
    """204, and then it does not exist."""
    name = custom_class(api)
    answer = api.delete(f"/resource_classes/{name}")
    assert (answer.status, answer.body) == (204, b"")
    assert "cache-control" not in answer.headers
    assert api.get(f"/resource_classes/{name}").status == 404
    assert api.put(f"/resource_classes/{name}").status == 201


def test_a_standard_class_cannot_be_deleted(api: Client) -> None:
    """400."""
    answer = api.delete("/resource_classes/VCPU")
    assert_refused(answer, 400, "Cannot delete standard resource class")


def test_a_class_in_use_cannot_be_deleted(api: Client) -> None:
    """If any provider has inventory of it, used or not."""
    name = custom_class(api)
    host = provider(api, {name: 1})
    answer = api.delete(f"/resource_classes/{name}")
    assert_refused(answer, 409, "Error in delete resource class", "Class is in use in inventory")
    put_inventories(api, host, {})
    assert api.delete(f"/resource_classes/{name}").status == 204


@pytest.mark.parametrize("path", ["/resource_classes", "/resource_classes/VCPU"])
@pytest.mark.parametrize(("version", "cached"), [("1.14", False), ("1.15", True), ("1.39", True)])
def test_reading_classes_says_when_they_were_changed_from_1_15(
    api: Client, path: str, version: str, cached: bool
) -> None:
    """`Last-Modified` and `Cache-Control: no-cache` go together (1.8)."""
    headers = api.get(path, version=version).headers
    assert ("last-modified" in headers) is cached
    assert headers.get("cache-control") == ("no-cache" if cached else None)


def test_faults_of_post_are_found_in_order(api: Client) -> None:
    """V C P B, then the conflict."""
    name = custom_class(api)
    assert_precedence(
        api,
        Ask("POST", "/resource_classes", version="1.1", body=b"{", headers=FORBIDDEN | TEXT),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.39"}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": {"name": name}}, 409),
            Row("the name", {"json": {"name": new_custom_name()}}, 201),
        ],
    )


def test_faults_of_a_rename_are_found_in_order(api: Client) -> None:
    """V C P B L, then the conflict."""
    old, taken = custom_class(api), custom_class(api)
    assert_precedence(
        api,
        Ask(
            "PUT",
            "/resource_classes/CUSTOM_NOT_THERE",
            version="1.1",
            body=b"{",
            headers=FORBIDDEN | TEXT,
        ),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.6"}, 415),
            Row("the content type", {"headers": JSON}, 403),
            Row("the role", {"headers": ALLOWED}, 400, "Malformed JSON"),
            Row("the JSON", {"body": b"{}"}, 400, "JSON does not validate"),
            Row("the schema", {"body": None, "json": {"name": taken}}, 404),
            Row("the class", {"path": f"/resource_classes/{old}"}, 409),
            Row("the new name", {"json": {"name": new_custom_name()}}, 200),
        ],
    )


def test_faults_of_put_are_found_in_order_from_1_7(api: Client) -> None:
    """P, then the name."""
    assert_precedence(
        api,
        Ask("PUT", "/resource_classes/nonsense", headers=FORBIDDEN | TEXT),
        [
            Row("nothing", {}, 403),
            Row("the role", {"headers": ALLOWED}, 400),
            Row("the name", {"path": f"/resource_classes/{new_custom_name()}"}, 201),
        ],
    )


@pytest.mark.parametrize("path", ["/resource_classes", "/resource_classes/CUSTOM_NOT_THERE"])
def test_faults_of_reading_are_found_in_order(api: Client, path: str) -> None:
    """V A P L."""
    assert_precedence(
        api,
        Ask("GET", path, version="1.1", headers=FORBIDDEN | TEXT | {"Accept": "text/plain"}),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.39"}, 406),
            Row("Accept", {"headers": {"Accept": "application/json"}}, 403),
            Row("the role", {"headers": ALLOWED}, 404 if "CUSTOM" in path else 200),
        ],
    )


def test_faults_of_delete_are_found_in_order(api: Client) -> None:
    """V P L."""
    assert_precedence(
        api,
        Ask("DELETE", "/resource_classes/CUSTOM_NOT_THERE", version="1.1", headers=FORBIDDEN),
        [
            Row("nothing", {}, 404),
            Row("the microversion", {"version": "1.39"}, 403),
            Row("the role", {"headers": ALLOWED}, 404, "No such resource class"),
            Row("the class", {"path": f"/resource_classes/{custom_class(api)}"}, 204),
        ],
    )
