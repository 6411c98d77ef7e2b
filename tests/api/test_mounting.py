# SPDX-License-Identifier: Apache-2.0
"""The application mounted under a prefix, as a web server mounts it at `/placement`, and behind a
proxy.

Source: rest-api.md 1.1, 1.3 and 3; operations.md 3.2 (`[oslo_middleware]`). OpenStack Placement
ignores that option (release 16.0.0 under uWSGI); berth follows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.api import configured
from tests.api.worlds import new_custom_name, new_name, new_uuid, provider
from tests.client import Client

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

pytestmark = pytest.mark.in_process


@pytest.fixture
def mounted(shared_app: WSGIApplication) -> Client:
    """A client of the application at `/placement`."""
    return Client.of(shared_app, script_name="/placement")


def test_links_begin_with_the_prefix(shared_app: WSGIApplication, mounted: Client) -> None:
    """Those of providers and of classes; each request has its own prefix."""
    uuid = provider(mounted)
    for client, prefix in ((mounted, "/placement"), (Client.of(shared_app), "")):
        path = f"{prefix}/resource_providers/{uuid}"
        links = client.get(f"/resource_providers/{uuid}").json["links"]
        assert [link["href"] for link in links] == [
            path,
            *(
                f"{path}/{part}"
                for part in ("inventories", "usages", "aggregates", "traits", "allocations")
            ),
        ]
    body = mounted.get("/resource_classes/VCPU").json
    assert body["links"] == [{"rel": "self", "href": "/placement/resource_classes/VCPU"}]


def test_locations_contain_the_prefix(mounted: Client) -> None:
    """They are absolute, with the request's host."""
    body, name = {"name": new_name(), "uuid": new_uuid()}, new_custom_name()
    begin = "http://localhost/placement"
    made = mounted.post("/resource_providers", json=body)
    assert made.headers["Location"] == f"{begin}/resource_providers/{body['uuid']}"
    assert mounted.put(f"/traits/{name}").headers["Location"] == f"{begin}/traits/{name}"
    made = mounted.post("/resource_classes", json={"name": name})
    assert made.headers["Location"] == f"{begin}/resource_classes/{name}"


def test_a_prefix_is_quoted_in_urls(shared_app: WSGIApplication) -> None:
    """Servers pass it decoded; in berth's links it is quoted as in the request's URL."""
    wide = Client.of(shared_app, script_name="/\u96f2 x\r\n".encode().decode("latin-1"))
    name = new_custom_name()
    quoted = "/%E9%9B%B2%20x%0D%0A"
    made = wide.post("/resource_classes", json={"name": name})
    assert made.headers["Location"] == f"http://localhost{quoted}/resource_classes/{name}"
    (link,) = wide.get(f"/resource_classes/{name}").json["links"]
    assert link["href"] == f"{quoted}/resource_classes/{name}"


@pytest.mark.parametrize("path", ["", "/"])
def test_the_empty_path_is_the_root(mounted: Client, path: str) -> None:
    """The prefix alone, with or without a slash, returns the version document."""
    answer = mounted.get(path)
    assert answer.json["versions"][0]["id"] == "v1.0"
    assert answer.json["versions"][0]["links"] == [{"rel": "self", "href": ""}]


# --- Proxies --------------------------------------------------------------------------------------

FORWARDED = [
    ({"X-Forwarded-Proto": "https"}, "https://localhost/"),
    ({"X-Forwarded-Host": "api.example.org"}, "http://api.example.org/"),
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
    answer = behind.get("/resource_classes/VCPU", headers={"X-Forwarded-Prefix": "/placement"})
    (link,) = answer.json["links"]
    assert link["href"] == "/placement/resource_classes/VCPU"
