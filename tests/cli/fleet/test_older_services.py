# SPDX-License-Identifier: Apache-2.0
"""Commands against a service without berth's own API, such as OpenStack Placement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import pytest

from berth.cli.failure import ExitCode
from tests.cli.in_process import InProcess

UUID: Final = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"


class Older:
    """A transport to a service that has one provider and one old route."""

    headers: Mapping[str, str] = {}

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.status_code, self.text = 0, ""

    def request(self, url: str, method: str, **options: Any) -> Older:
        """Answer a request."""
        self.paths.append(url)
        detail = "The resource could not be found.\n\n Nothing here.  "
        answer: object = {"errors": [{"status": 404, "detail": detail}]}
        self.status_code = 200
        if url.startswith("/resource_providers?name="):
            answer = {"resource_providers": [{"uuid": UUID, "name": "cn7"}]}
        elif url.startswith("/allocation_candidates"):
            answer = {"allocation_requests": [], "provider_summaries": {}}
        elif url.endswith("/inventories"):
            answer = {"resource_provider_generation": 1, "inventories": {}}
        else:
            self.status_code = 404
        self.text = json.dumps(answer)
        return self

    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)


@pytest.fixture
def older(monkeypatch: pytest.MonkeyPatch) -> Older:
    """The service that the environment names."""
    older = Older()
    monkeypatch.setattr("berth.hosts.transports.with_token", lambda *_, **__: older)
    monkeypatch.setenv("BERTH_URL", "http://old")
    monkeypatch.setenv("OS_TOKEN", "t")
    return older


MISSING: Final = "it is older than this program, or is OpenStack Placement"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("capacity VCPU=1", f"this service does not have /berth/v1/capacity: {MISSING}"),
        ("flavor set a VCPU=1", f"this service does not have /berth/v1/flavors/a: {MISSING}"),
        ("trait show CUSTOM_A", "Nothing here"),
        ("provider list", "Nothing here; there is no placement service here"),
    ],
)
def test_a_missing_route_is_named(
    older: Older, in_process: InProcess, words: str, said: str
) -> None:
    """And why it may be missing."""
    done = in_process(*words.split())
    assert done.returncode == ExitCode.SERVICE
    assert done.stderr.startswith(f"berth: {said}")


def test_a_request_becomes_a_query_of_the_old_route(
    older: Older, in_process: InProcess, tmp_path: Path
) -> None:
    """Each member that it has a parameter for; aggregates are their UUIDs there."""
    request = {
        "groups": {
            "": {"resources": {"VCPU": 2, "DISK_GB": 9}, "required": ["A", "!B", ["C", "D"]]},
            "_G": {"resources": {"VGPU": 1}, "member_of": [f"!{UUID}"], "in_tree": ["cn7"]},
            "_H": {"resources": {"VGPU": 1}, "member_of": [[UUID, UUID]]},
        },
        "host": {"required": ["E", "!F"]},
        "together": [{"groups": ["_G", "_H"], "at": "subtree"}],
        "apart": [{"groups": ["_G", "_H"], "at": "provider"}],
    }
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    done = in_process("candidates", "--request", str(path), "--limit", "4")
    assert done.returncode == ExitCode.NOTHING_FITS
    route, _, query = older.paths[-1].partition("?")
    assert route == "/allocation_candidates"
    assert parse_qsl(query) == [
        ("resources", "VCPU:2,DISK_GB:9"),
        ("required", "A"),
        ("required", "!B"),
        ("required", "in:C,D"),
        ("resources_G", "VGPU:1"),
        ("member_of_G", f"!{UUID}"),
        ("in_tree_G", UUID),
        ("resources_H", "VGPU:1"),
        ("member_of_H", f"in:{UUID},{UUID}"),
        ("root_required", "E,!F"),
        ("same_subtree", "_G,_H"),
        ("group_policy", "isolate"),
        ("limit", "4"),
    ]


@pytest.mark.parametrize(
    ("member", "body"),
    [
        ("what_if", {"what_if": {"nothing_used": True}}),
        ("order", {"order": {"by": "pack"}}),
        ("flavor", {"request": {"flavor": "m1.large", "host": {}}}),
        ("tolerate", {"request": {"groups": {}, "tolerate": "*"}}),
        ("alternatives", {"request": {"alternatives": [], "groups": {}}}),
        ("host.not_in", {"request": {"groups": {}, "host": {"not_in": ["cn1"]}}}),
        ("under", {"request": {"groups": {"": {"under": ["cn1"]}}}}),
        ("together", {"request": {"groups": {}, "together": [{"groups": [], "at": "tree"}]}}),
        (
            "apart",
            {"request": {"groups": {"A": {}, "B": {}}, "apart": [{"groups": ["A"], "at": "tree"}]}},
        ),
    ],
)
def test_what_the_old_route_cannot_be_asked_is_refused(
    older: Older, in_process: InProcess, tmp_path: Path, member: str, body: dict[str, Any]
) -> None:
    """Rather than left out."""
    path = tmp_path / "request.json"
    path.write_text(json.dumps({"request": {"groups": {}}, **body}))
    done = in_process("candidates", "--request", str(path))
    assert done.returncode == ExitCode.UNSUPPORTED
    assert done.stderr.endswith(f"which {member} needs\n")
