# SPDX-License-Identifier: Apache-2.0
"""`GET /openapi.json`: the description of the API for tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.client import Client
from tests.routes import VERSIONS

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

#: What berth has and the original has not.
pytestmark = pytest.mark.deliberately_different("the original does not describe itself")


@pytest.mark.parametrize("version", VERSIONS)
def test_each_microversion_has_a_document_of_its_own(api: Client, version: str) -> None:
    """It declares the version header with which it was requested."""
    answer = api.get("/openapi.json", version=version)
    document = answer.json
    assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
    assert (document["openapi"], document["info"]["version"]) == ("3.1.0", version)
    asked = document["components"]["parameters"]["Microversion"]
    assert asked["required"] and asked["schema"]["enum"] == [f"placement {version}"]
    assert answer.headers["OpenStack-API-Version"] == f"placement {version}"
    assert answer.headers["Vary"] == "openstack-api-version"


@pytest.mark.parametrize("header", [None, "", "compute 2.1", "placement latest"])
def test_who_names_no_version_is_shown_the_newest(api: Client, header: str | None) -> None:
    """Unlike other routes, where the default is 1.0; the response says which it is."""
    answer = api.get("/openapi.json", version=None, headers={"OpenStack-API-Version": header})
    assert answer.json["info"]["version"] == "1.39"
    assert answer.headers["OpenStack-API-Version"] == "placement 1.39"


@pytest.mark.in_process
def test_a_mounted_service_names_its_prefix(app: WSGIApplication) -> None:
    """Tools append the document's paths to it."""
    client, mounted = Client.of(app), Client.of(app, script_name="/placement")
    assert client.get("/openapi.json").json["servers"] == [{"url": "/"}]
    assert mounted.get("/openapi.json").json["servers"] == [{"url": "/placement"}]
