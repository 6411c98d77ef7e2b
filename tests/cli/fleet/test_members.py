# SPDX-License-Identifier: Apache-2.0
"""Commands of a member of a project, who may not read providers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest

from berth.cli.fleet import access
from tests.cli.in_process import InProcess

JOB: Final = "00000000-0000-4000-8000-000000000017"
HOST, CARD = (f"00000000-0000-4000-8000-00000000000{number}" for number in (1, 2))

CONSUMER: Final = {
    "uuid": JOB,
    "name": "job",
    "project_id": "web",
    "user_id": "alice",
    "consumer_type": "JOB",
    "generation": 3,
    "created_at": None,
    "allocations": {CARD: {"name": "cn1_gpu0", "resources": {"PGPU": 2}}},
    "lease": None,
}
PLACED: Final = {
    "repeated": False,
    "placements": {JOB: {"host": HOST, "allocations": {CARD: {"resources": {"PGPU": 2}}}}},
}
REFUSED: Final = {"errors": [{"detail": "no"}]}


class OfMember:
    """A service for a member of the project web; `names` are sent with placements."""

    headers: Mapping[str, str] = {}

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self.names = names
        self.status_code, self.text = 0, ""

    def request(self, url: str, method: str, **options: Any) -> OfMember:
        """Answer what a member may ask, and refuse the rest."""
        answer: object = REFUSED
        if "project_id=web" in url and "host=" not in url:
            answer = {"end": True, "lines": 0}
        elif "/berth/v1/consumers/" in url:
            answer = CONSUMER
        elif "/berth/v1/place" in url:
            answer = PLACED | ({"providers": self.names} if self.names else {})
        self.status_code = 403 if answer is REFUSED else 200
        self.text = json.dumps(answer)
        return self

    def json(self) -> object:
        """The decoded body."""
        return json.loads(self.text)


@pytest.mark.parametrize(
    ("words", "names", "line"),
    [
        # It may not be asked whether a host has the name of the project.
        ("who web", {}, "0 consumers"),
        ("consumer show web/job", {}, "cn1_gpu0  PGPU      2"),
        (f"consumer show {JOB}", {}, "cn1_gpu0  PGPU      2"),
        # What has no name for the caller keeps its UUID.
        ("place PGPU=2 --for web/job", {}, f"placed web/job on {HOST}: cn1_gpu0 PGPU 2"),
        (
            "place PGPU=2 --for web/job --dry-run",
            {HOST: "cn1", CARD: "g0"},
            "would place web/job on cn1: g0 PGPU 2",
        ),
    ],
)
def test_a_member_sees_the_names_in_its_own_consumers(
    in_process: InProcess,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    names: dict[str, str],
    line: str,
) -> None:
    """And a placement that succeeded is no error."""
    monkeypatch.setattr(access, "connect", lambda *_, **__: OfMember(names))
    assert in_process(*words.split()).stdout.splitlines()[-1] == line


def test_what_a_member_may_not_see_is_refused(
    in_process: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the words of the service."""
    monkeypatch.setattr(access, "connect", lambda *_, **__: OfMember())
    done = in_process("who", "db")
    assert (done.returncode, done.stderr) == (11, "berth: no\n")
