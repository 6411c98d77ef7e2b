# SPDX-License-Identifier: Apache-2.0
"""Behind a proxy: its headers, and whether berth trusts them.

Source: operations.md 3.2 (`[oslo_middleware]`), rest-api.md 1.1. OpenStack Placement ignores the
option (release 16.0.0 under uWSGI); berth follows it.
"""

import pytest

from tests.api import configured
from tests.api.worlds import new_custom_name
from tests.client import Client

pytestmark = pytest.mark.in_process

FORWARDED = [
    ({"X-Forwarded-Proto": "https"}, "https://localhost/"),
    ({"X-Forwarded-Host": "api.example.org"}, "http://api.example.org/"),
    (
        {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "api.example.org"},
        "https://api.example.org/",
    ),
    ({"Forwarded": "proto=https;host=api.example.org"}, "https://api.example.org/"),
    (
        {"Forwarded": "host=first.example.org;proto=https, host=second.example.org"},
        "https://first.example.org/",
    ),
    (
        {"Forwarded": "host=new.example.org", "X-Forwarded-Host": "old.example.org"},
        "http://new.example.org/",
    ),
    ({"X-Forwarded-Prefix": "/placement"}, "http://localhost/placement/"),
]


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A service that trusts its proxy."""
    settings = "[oslo_middleware]\nenable_proxy_headers_parsing = True\n"
    return configured.serve(tmp_path_factory.mktemp("behind"), settings)


def location(client: Client, headers: dict[str, str]) -> str:
    """The `Location` of a new class."""
    name = new_custom_name()
    answer = client.put(f"/resource_classes/{name}", headers={"Host": "localhost"} | headers)
    assert answer.status == 201
    place = answer.headers["location"]
    assert place.endswith(f"resource_classes/{name}")
    return place.removesuffix(f"resource_classes/{name}")


def test_a_proxy_is_believed_when_the_operator_says_so(api: Client, behind: Client) -> None:
    """Location has their scheme, host and prefix; by default the headers have no effect."""
    for headers, base in FORWARDED:
        assert location(behind, headers) == base
        assert location(api, headers) == "http://localhost/"


def test_a_prefix_shows_in_links(behind: Client) -> None:
    """Like a mount prefix."""
    answer = behind.get("/resource_classes/VCPU", headers={"X-Forwarded-Prefix": "/placement"})
    (link,) = answer.json["links"]
    assert link["href"] == "/placement/resource_classes/VCPU"
