# SPDX-License-Identifier: Apache-2.0
"""The microversion of a request, and which layer refuses first.

Source: rest-api.md 1.1 and 1.2.
"""

import pytest

from tests.api.versions import versions
from tests.api.worlds import NOBODY, TITLES
from tests.client import Client, Headers, Response

NO_TOKEN = {"X-Auth-Token": None}


def ask(
    api: Client, header: str, path: str = "/resource_providers?name=nobody-has-this"
) -> Response:
    """GET with this version header."""
    return api.get(path, version=None, headers={"OpenStack-API-Version": header})


@pytest.mark.parametrize("version", versions("1.0"))
def test_every_version_is_served_and_named_in_the_answer(api: Client, version: str) -> None:
    """Exactly 1.0 to 1.39, and the response repeats the one that was used."""
    answer = api.get("/", version=version)
    assert answer.status == 200
    assert answer.headers["OpenStack-API-Version"] == f"placement {version}"


@pytest.mark.parametrize(
    "header",
    ["", "compute 2.1", "placement", "1.5", "compute 2.1, identity 3.0"],
)
def test_a_header_that_says_nothing_about_placement_means_1_0(api: Client, header: str) -> None:
    """A header without an entry for placement selects the oldest version."""
    assert ask(api, header).headers["OpenStack-API-Version"] == "placement 1.0"


def test_no_version_header_means_1_0(api: Client) -> None:
    """The default is the oldest version."""
    assert api.get("/", version=None).headers["OpenStack-API-Version"] == "placement 1.0"


@pytest.mark.parametrize(
    ("header", "version"),
    [
        ("placement 1.5", "1.5"),
        ("PLACEMENT 1.7", "1.7"),
        ("Placement 1.7", "1.7"),
        ("placement   1.8", "1.8"),
        ("placement\t1.8", "1.8"),
        ("  placement 1.8  ", "1.8"),
        ("compute 2.1,placement 1.6", "1.6"),
        ("compute 2.1, placement 1.6", "1.6"),
        ("placement 1.6, compute 2.1", "1.6"),
        ("placement 1.3,placement 1.4", "1.4"),
        ("placement 1.4,placement 1.3", "1.3"),
        ("placement latest", "1.39"),
        ("placement 01.05", "1.5"),
        ("placement 1.05", "1.5"),
    ],
)
def test_the_version_header_is_read_generously(api: Client, header: str, version: str) -> None:
    """Letter case of the service, blanks and other services do not matter; the last entry
    counts."""
    assert ask(api, header).headers["OpenStack-API-Version"] == f"placement {version}"


def test_two_version_headers_are_one_list(api: Client) -> None:
    """Headers of the same name are joined, so the last entry for placement counts."""
    pairs = [
        ("OpenStack-API-Version", "placement 1.3"),
        ("OpenStack-API-Version", "placement 1.4"),
    ]
    answer = api.request("GET", "/", version=None, headers=pairs)
    if answer.headers["OpenStack-API-Version"] == "placement 1.3":
        pytest.skip("this server keeps only one of two header lines")
    assert answer.headers["OpenStack-API-Version"] == "placement 1.4"


def test_the_name_of_the_version_header_has_no_letter_case(api: Client) -> None:
    """HTTP header names are case-insensitive."""
    answer = api.get("/", version=None, headers={"openstack-api-VERSION": "placement 1.9"})
    assert answer.headers["OpenStack-API-Version"] == "placement 1.9"


@pytest.mark.parametrize(
    "name", ["X-OpenStack-Placement-API-Version", "X-OpenStack-API-Version", "X-Placement-Version"]
)
def test_legacy_version_headers_are_ignored(api: Client, name: str) -> None:
    """Only the current header counts."""
    answer = api.get("/", version=None, headers={name: "1.9"})
    assert answer.headers["OpenStack-API-Version"] == "placement 1.0"


@pytest.mark.parametrize("path", ["/", "/resource_providers", "/no/such/path"])
@pytest.mark.parametrize(
    "text", ["1", "1.", "1.2.3", "pony.horse", "Latest", "LATEST", "1.x", ".5"]
)
def test_a_version_that_cannot_be_read_is_400(api: Client, text: str, path: str) -> None:
    """Before routing, without a version header or an error code."""
    answer = ask(api, f"placement {text}", path)
    assert_version_refused(answer, 400)
    assert f"invalid version string: {text}" in answer.detail


@pytest.mark.parametrize("path", ["/", "/resource_providers", "/no/such/path"])
@pytest.mark.parametrize("text", ["1.40", "2.0", "0.9", "1.-1", "1.1000000"])
def test_a_version_that_is_not_served_is_406(api: Client, text: str, path: str) -> None:
    """Before routing, and the response has the supported range."""
    answer = ask(api, f"placement {text}", path)
    assert_version_refused(answer, 406)
    assert f"Unacceptable version header: {text}" in answer.detail
    assert (answer.error["min_version"], answer.error["max_version"]) == ("1.0", "1.39")


def assert_version_refused(answer: Response, status: int) -> None:
    """An error from before the negotiation: no version header, no code."""
    assert answer.status == status
    assert answer.headers["Content-Type"] == "application/json"
    assert "OpenStack-API-Version" not in answer.headers
    error = answer.error
    assert (error["status"], error["title"]) == (status, TITLES[status])
    assert error["request_id"] == answer.headers["x-openstack-request-id"]
    assert "code" not in error


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/resource_providers", "GET"),
        ("/resource_providers", "PATCH"),
        ("/no/such/path", "GET"),
        ("/resource_providers/", "GET"),
    ],
)
@pytest.mark.parametrize("version", ["1.39", "1.40", "pony.horse", None])
def test_no_token_is_refused_before_anything_else(
    api: Client, path: str, method: str, version: str | None
) -> None:
    """401 comes before 400 and 406 for the version, 404 and 405, and has no version header."""
    answer = api.request(method, path, version=version, headers=NO_TOKEN)
    assert answer.status == 401
    assert "OpenStack-API-Version" not in answer.headers
    assert answer.headers["x-openstack-request-id"].startswith("req-")


def test_the_body_of_401_without_keystone(api: Client) -> None:
    """noauth2 has a body of its own.

    Source: rest-api.md 1.11.
    """
    answer = api.get("/resource_providers", headers=NO_TOKEN)
    body = answer.json
    assert answer.headers["Content-Type"].startswith("application/json")
    assert (body["code"], body["title"]) == ("401 Unauthorized", "Unauthorized")
    assert isinstance(body["message"], str)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/resource_providers"),
        ("GET", "/resource_providers/9c1f6f0e-3c55-4d43-9d6a-3f1de6a5b6c0"),
        ("PATCH", "/resource_providers"),
        ("GET", "/no/such/path"),
    ],
)
def test_an_unserved_version_beats_404_405_and_403(api: Client, method: str, path: str) -> None:
    """The version is negotiated before the application gets the request."""
    assert api.request(method, path, version="1.40", headers=NOBODY).status == 406
    assert api.request(method, path, version="1", headers=NOBODY).status == 400


def test_headers_type_finds_names_in_any_case() -> None:
    """The client of the tests compares header names as HTTP does."""
    assert Headers([("X-A", "1"), ("x-a", "2")])["x-A"] == "1, 2"
