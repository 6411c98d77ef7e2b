# SPDX-License-Identifier: Apache-2.0
"""What holds for all of `/berth/v1`: version, documents, headers and errors.

Source: spec/beyond.md 1.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from berth.api.namespaces import BERTH
from tests.api import configured
from tests.client import LATEST, Client

PREFIX = "/berth/v1"


def test_the_version_document_needs_no_token(tmp_path: Path) -> None:
    """With the parts of the API and every bound of a request."""
    answered = configured.serve(tmp_path).get(PREFIX, headers={"X-Auth-Token": None})
    assert answered.status == 200
    shown = answered.json
    assert shown["version"] == answered.headers["Berth-API"] == "1.0"
    assert shown["experimental"] == []
    assert (shown["max_watchers"], shown["max_search_seconds"]) == (32, 5)
    # Clients rely on some of them.
    assert (shown["max_groups"], shown["max_references"], shown["max_tries"]) == (64, 10_000, 32)
    assert (shown["max_flavors"], shown["max_flavor_bytes"]) == (1000, 16_384)


def test_the_operators_bounds_are_in_the_version_document(tmp_path: Path) -> None:
    """A search without a time limit has none; each part of the API is stable or experimental."""
    settings = "[berth]\ncandidates_time_budget = 0\nwatchers_max = 7\n"
    shown = configured.serve(tmp_path, settings).get(PREFIX).json
    assert "max_search_seconds" not in shown
    assert shown["max_watchers"] == 7
    parts = {operation.path.split("/")[1] for operation in BERTH.operations if operation.rule}
    assert sorted(shown["stable"] + shown["experimental"]) == sorted(parts)


def test_it_has_a_document_of_its_own(tmp_path: Path) -> None:
    """Valid, with every path, and without a token."""
    document = (
        configured.serve(tmp_path)
        .get(f"{PREFIX}/openapi.json", headers={"X-Auth-Token": None})
        .json
    )
    OpenAPIV31SpecValidator(document).validate()
    assert set(document["paths"]) == {BERTH.path_of(operation) for operation in BERTH.operations}
    stable = {one["x-stability"] for path in document["paths"].values() for one in path.values()}
    assert stable <= {"stable", "experimental"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "", {}, 200),
        ("GET", "/openapi.json", {}, 200),
        ("GET", "/nothing", {}, 404),
        ("PUT", "", {}, 405),
        ("GET", "/nothing", {"X-Auth-Token": None}, 401),
        ("GET", "/nothing", {"OpenStack-API-Version": "placement x"}, 400),
        ("GET", "/nothing", {"OpenStack-API-Version": "placement 9.9"}, 406),
        ("GET", "/" + "a" * 70_000, {}, 414),
    ],
)
def test_every_answer_has_the_version(
    client: Client, method: str, path: str, headers: dict[str, str | None], status: int
) -> None:
    """Including errors of the layers in front of the API."""
    answered = client.request(method, PREFIX + path, headers=headers, version=None)
    assert answered.status == status
    assert answered.headers["Berth-API"] == "1.0"
    if status in (400, 404, 405, 406, 414):
        assert answered.code and answered.code.startswith("berth.")


@pytest.mark.parametrize("path", ["/", "/traits", "/berth", "/berth/v10", "/nothing"])
def test_no_other_path_has_it(client: Client, path: str) -> None:
    """Old routes answer as before."""
    answered = client.get(path, version="1.0")
    assert "Berth-API" not in answered.headers
    assert answered.status == 200 or answered.code is None


@pytest.mark.parametrize("version", ["1.0", "1.22", LATEST])
def test_the_microversion_is_echoed_and_decides_nothing(client: Client, version: str) -> None:
    """Codes are there at each."""
    answered = client.get(f"{PREFIX}/nothing", version=version)
    assert answered.headers["OpenStack-API-Version"] == f"placement {version}"
    assert (answered.status, answered.code) == (404, "berth.not_found")
