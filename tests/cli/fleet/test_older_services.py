# SPDX-License-Identifier: Apache-2.0
"""Commands against a service without berth's own API, such as OpenStack Placement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.fleet.client import Client, of_transport
from berth.cli.fleet.old_queries import old_query
from berth.cli.fleet.references import Labels
from berth.cli.fleet.refusals import NoOwnApi, ServiceRefused
from tests.cli.in_process import InProcess

UUID = "4e8e5957-649f-477b-9e5b-f1f75b21c03c"


class Said:
    """A response of the service."""

    def __init__(self, status: int, body: object) -> None:
        self.status_code = status
        self.headers: Mapping[str, str] = {}
        self.text = json.dumps(body)

    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)


class Older:
    """A transport to a service that has one provider and one old route."""

    def __init__(self) -> None:
        self.paths: list[str] = []

    def request(self, url: str, method: str, **options: Any) -> Said:
        """Answer a request."""
        self.paths.append(url)
        if url.startswith("/resource_providers?name="):
            return Said(200, {"resource_providers": [{"uuid": UUID, "name": "cn7"}]})
        if url.startswith("/allocation_candidates"):
            return Said(200, {"allocation_requests": [], "provider_summaries": {}})
        detail = "The resource could not be found.\n\n Nothing here.  "
        return Said(404, {"errors": [{"status": 404, "detail": detail}]})


@pytest.fixture
def older() -> Client:
    """A client of such a service."""
    return of_transport(Older())


def test_it_has_no_labels(older: Client) -> None:
    """Aggregates are their UUIDs there."""
    assert Labels(older).by_uuid() == {}
    assert Labels(older).aggregates(UUID) == [UUID]


def test_a_missing_route_is_named(older: Client) -> None:
    """And why it may be missing."""
    with pytest.raises(NoOwnApi) as refused:
        older.send("POST", "/berth/v1/explain", {})
    assert str(refused.value) == (
        "this service does not have /berth/v1/explain: it is older than this program, or is "
        "OpenStack Placement"
    )
    assert refused.value.code == ExitCode.SERVICE
    with pytest.raises(NoOwnApi):
        older.send("PUT", "/berth/v1/flavors/m1.large", {})
    with pytest.raises(ServiceRefused, match=r"^Nothing here$"):
        older.get("/somewhere/else")
    with pytest.raises(ServiceRefused, match=r"^Nothing here; there is no placement service here"):
        older.get("/resource_providers")


def test_a_request_becomes_a_query_of_the_old_route(older: Client) -> None:
    """Each member that it has a parameter for."""
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
    assert old_query(older, {"request": request, "limit": 4}) == [
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
    older: Client, member: str, body: dict[str, Any]
) -> None:
    """Rather than left out."""
    with pytest.raises(CommandFailed, match=rf"which {member} needs$") as refused:
        old_query(older, {"request": {"groups": {}}, **body})
    assert refused.value.code == ExitCode.UNSUPPORTED


def test_nothing_fits_there(in_process: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """The old route is asked, and the exit code says that nothing fits."""
    transport = Older()
    monkeypatch.setattr(
        "berth.hosts.transports.with_token", lambda *arguments, **options: transport
    )
    words = ("candidates", "VCPU=1", "--in-tree", "cn7", "--limit", "3")
    done = in_process(*words, "--url", "http://old", "--token", "t")
    assert done.returncode == ExitCode.NOTHING_FITS
    assert transport.paths[-1] == (
        f"/allocation_candidates?resources=VCPU%3A1&in_tree={UUID}&limit=3"
    )
