# SPDX-License-Identifier: Apache-2.0
"""What holds for all of `/berth/v1`: version, documents, headers, errors and bodies.

Source: spec/beyond.md 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from berth.api.berth_v1 import body
from berth.api.berth_v1.pointed import PointedSchema
from berth.api.berth_v1.refusals import unknown_name
from berth.api.errors import OVERLOADED, QUERY_BAD_VALUE, SEARCH_GAVE_UP, Refused
from berth.api.namespaces import BERTH, PLACEMENT
from berth.api.operations.berth_v1.codes import CODES
from berth.api.operations.fragments import closed_object
from berth.api.request import Request
from berth.candidates.references import UnknownName
from berth.model.bounds import BODY_BYTES_MAX
from tests.api import configured
from tests.client import LATEST, Client, wsgi_environ

PREFIX = "/berth/v1"


def test_the_version_document_needs_no_token(tmp_path: Path) -> None:
    """With the parts of the API and every bound of a request."""
    answered = configured.serve(tmp_path).get(PREFIX, headers={"X-Auth-Token": None})
    assert answered.status == 200
    shown = answered.json
    assert shown["version"] == answered.headers["Berth-API"] == "1.0"
    assert shown["experimental"] == []
    assert (shown["max_groups"], shown["max_references"]) == (64, 10_000)
    assert (shown["max_body_bytes"], shown["max_labels"]) == (2**20, 32)
    assert (shown["max_lease_seconds"], shown["max_tries"]) == (86_400, 32)
    assert (shown["max_alternatives"], shown["max_capacity_best"]) == (8, 1_000)
    assert (shown["max_watchers"], shown["max_search_seconds"]) == (32, 5)


def test_a_search_without_a_time_limit_has_no_bound(tmp_path: Path) -> None:
    """The operator's bounds are in the version document, too."""
    settings = "[berth]\ncandidates_time_budget = 0\nwatchers_max = 7\n"
    shown = configured.serve(tmp_path, settings).get(PREFIX).json
    assert "max_search_seconds" not in shown
    assert shown["max_watchers"] == 7


def test_each_part_of_the_api_is_in_the_version_document(api: Client) -> None:
    """Either stable or experimental."""
    shown = api.get(PREFIX).json
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
    assert not any(path.startswith(PREFIX) for path in configured_paths())


def configured_paths() -> list[str]:
    """The paths of OpenStack Placement's API."""
    return [PLACEMENT.path_of(operation) for operation in PLACEMENT.operations]


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
def test_the_microversion_is_echoed_and_decides_nothing(api: Client, version: str) -> None:
    """Codes are there at each."""
    answered = api.get(f"{PREFIX}/nothing", version=version)
    assert answered.headers["OpenStack-API-Version"] == f"placement {version}"
    assert (answered.status, answered.code) == (404, "berth.not_found")


@pytest.mark.parametrize(
    ("code", "status", "spelled"),
    [
        ("placement.undefined_code", 400, "berth.request.invalid"),
        ("placement.undefined_code", 404, "berth.not_found"),
        ("placement.undefined_code", 500, "berth.undefined_code"),
        (QUERY_BAD_VALUE, 400, "berth.request.invalid"),
        (SEARCH_GAVE_UP, 503, "berth.search.gave_up"),
        (OVERLOADED, 503, OVERLOADED),
        ("placement.concurrent_update", 409, "placement.concurrent_update"),
        ("berth.label.taken", 409, "berth.label.taken"),
    ],
)
def test_codes_of_the_layers_below_have_names_here(code: str, status: int, spelled: str) -> None:
    """Those that clients know stay."""
    assert CODES.spell(code, status) == spelled
    assert spelled in CODES.all


def test_an_unknown_name_has_its_place_and_suggestions() -> None:
    """For programs in members, for people in the detail."""
    name = UnknownName("/groups/a~1b/required/0", "trait", "HW_CPU_X86_AVX3", ("HW_CPU_X86_AVX2",))
    refused = unknown_name(name, within="/request")
    assert (refused.status, refused.code) == (400, "berth.name.unknown")
    assert refused.facts == {
        "pointer": "/request/groups/a~1b/required/0",
        "did_you_mean": ["HW_CPU_X86_AVX2"],
    }
    assert refused.hint == "Did you mean HW_CPU_X86_AVX2?"


NUMBERS = PointedSchema(
    closed_object(
        {
            "count": {"type": "integer", "minimum": 0},
            "weight": {"type": "number"},
            "seen": {"type": ["integer", "null"]},
            "a/b": {"type": "array", "items": {"type": "string"}},
            "c.d": {"type": "object", "properties": {"e.f[0]": {"type": "string"}}},
        }
    )
)


def read(raw: bytes) -> Any:
    """Read a body with that schema."""
    environ = wsgi_environ("POST", "/", (), raw, script_name="")
    environ["berth.body"] = raw
    return body.read(Request(environ), NUMBERS)


def test_a_body_is_decoded() -> None:
    """Numbers with a fraction are numbers."""
    assert read(b'{"count": 1, "weight": 1.5, "a/b": ["x"]}') == {
        "count": 1,
        "weight": 1.5,
        "a/b": ["x"],
    }
    assert read(b'{"weight": 1e3}') == {"weight": 1000}


@pytest.mark.parametrize(
    ("raw", "pointer"),
    [
        (b'{"count": 1.0}', "/count"),
        (b'{"count": 1e0}', "/count"),
        (b'{"count": -1}', "/count"),
        (b'{"count": true}', "/count"),
        (b'{"seen": "x"}', "/seen"),
        (b'{"a/b": ["x", 1]}', "/a~1b/1"),
        (b'{"b~": 1}', "/b~0"),
        (b'{"c.d": 1}', "/c.d"),
        (b'{"c.d": {"e.f[0]": 1}}', "/c.d/e.f[0]"),
        (b"[]", ""),
        (b'{"weight": NaN}', "/weight"),
        (b'{"weight": Infinity}', "/weight"),
        (b'{"weight": 1e999}', "/weight"),
        (b'{"count": 1' + b"0" * 5000 + b"}", None),
        (b'{"count": 1', None),
        (b'{"a/b": ["\\ud800"]}', None),
        (b'{"a/b": ["\\u0000"]}', None),
        (b"\xff", None),
        (b"[" * 99 + b"]" * 99, None),
    ],
)
def test_a_wrong_body_is_refused(raw: bytes, pointer: str | None) -> None:
    """With the place of the fault, if it is JSON."""
    with pytest.raises(Refused) as refused:
        read(raw)
    assert refused.value.status == 400
    assert refused.value.facts.get("pointer") == pointer
    assert CODES.spell(refused.value.code, 400) == "berth.request.invalid"


def test_a_body_has_a_bound() -> None:
    """One byte more is too large."""
    assert read(b"{}" + b" " * (BODY_BYTES_MAX - 2)) == {}
    with pytest.raises(Refused) as refused:
        read(b"{}" + b" " * (BODY_BYTES_MAX - 1))
    assert refused.value.code == "berth.request.too_large"
    assert "max_body_bytes, 1048576" in refused.value.message
