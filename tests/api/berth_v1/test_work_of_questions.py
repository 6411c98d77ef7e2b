# SPDX-License-Identifier: Apache-2.0
"""A question looks at its budget often, and does little once it is spent, on a fleet in which no
two hosts are alike (spec/beyond.md 11).

Work is counted in calls of functions of berth; the clock of these tests runs with their looks.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final
from wsgiref.types import StartResponse, WSGIEnvironment

import pytest

from berth.api import request as searching
from berth.api.paths import match_of
from berth.config import AdmissionSettings
from berth.edge.admission import Admission
from tests.api import configured
from tests.client import Client, Response, WSGITransport
from tests.world_over_http import built_over_http
from tests.worlds import aggregate_uuid, consumer_uuid, world

HOSTS: Final = 60
RACKS: Final = 6
#: Seconds of a search, by default.
SECONDS: Final = 5.0

#: Hosts of three providers, each a shape of its own.
FLEET: Final = world(
    "\n".join(
        f"h{number}  DISK_GB=100  CUSTOM_{number}  @R{number % RACKS}\n"
        f"  h{number}_a  VCPU=16  VGPU=4\n"
        f"  h{number}_b  VCPU=16  VGPU=4"
        for number in range(HOSTS)
    )
)

_WHOLE: Final = {"groups": {"": {"resources": {"DISK_GB": 1}}, "_C": {"resources": {"VCPU": 2}}}}
_TOGETHER: Final = {
    "groups": {"_C": {"resources": {"VCPU": 3}}, "_G": {"resources": {"VGPU": 1}}},
    "together": [{"groups": ["_C", "_G"], "at": "provider"}],
}
_SPLIT: Final = {
    "groups": {"": {"resources": {"VCPU": 20, "VGPU": 3}, "split": {"VCPU": {}, "VGPU": {}}}}
}
_PACKED: Final = {"groups": {f"_{n}": {"resources": {"VCPU": 1 + n % 3}} for n in range(6)}}
_CONSUMERS: Final = [
    {
        "uuid": consumer_uuid(f"c{number}"),
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "INSTANCE",
    }
    for number in range(64)
]
_FLAVORS: Final = {"whole": _WHOLE, "together": _TOGETHER, "packed": _PACKED}


def _many(request: dict[str, Any]) -> dict[str, Any]:
    return {f"r{number}": request for number in range(20)}


def _place(request: dict[str, Any], **more: Any) -> tuple[str, str, dict[str, Any]]:
    body = {"request": request, "consumers": _CONSUMERS, **more}
    return "POST", "/berth/v1/place?dry_run=true", body


def _candidates(request: dict[str, Any], **more: Any) -> tuple[str, str, dict[str, Any]]:
    return "POST", "/berth/v1/candidates", {"request": request, **more}


def _capacity(request: dict[str, Any], **more: Any) -> tuple[str, str, dict[str, Any]]:
    return "POST", "/berth/v1/capacity", {"requests": _many(request), **more}


_PRESERVE: Final = {"by": "preserve", "preserve": dict.fromkeys(_FLAVORS, 1)}

QUESTIONS: Final[dict[str, tuple[str, str, dict[str, Any]]]] = {
    "preserve": _candidates(_TOGETHER, order=_PRESERVE),
    "pack": _candidates(_PACKED, order={"by": "pack"}, limit=500, summaries=True),
    "without drained hosts": _candidates(
        _WHOLE, order={"by": "spread"}, what_if={"drain": [f"h{n}" for n in range(0, HOSTS, 2)]}
    ),
    "splits": _capacity(_SPLIT),
    "packed": _capacity(_PACKED, by=["rack"], hosts_max=1000),
    "by host": _capacity(_TOGETHER, by=["host", "aggregate"]),
    "nothing used": _capacity(_WHOLE, by=["rack"], what_if={"nothing_used": True}),
    "more hosts": _capacity(
        _WHOLE,
        what_if={
            "add_hosts": [{"like": f"h{number}", "count": 9} for number in range(9)],
            "allocation_ratio": [{"resource_class": "VCPU", "ratio": 2}] * 9,
        },
    ),
    "place": _place(_TOGETHER),
    "place what is split": _place(_SPLIT),
    "place within a rack": _place(_PACKED, within="rack", max_per={"host": 1}),
    "a refusal of place": _place(_WHOLE, within="host"),
    "a drain": (
        "PUT",
        "/berth/v1/drains/all?dry_run=true",
        {"providers": [f"h{number}" for number in range(HOSTS)], "reason": "r"},
    ),
}

#: Looks of a question whose answer does not matter.
WARM: Final = 10

#: Calls between two looks at the budget, and after the first that says that it is spent.
BETWEEN_MAX: Final = 10_000
AFTER_MAX: Final = 50_000


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet, with racks and flavors."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        for rack in range(RACKS):
            path = f"/berth/v1/aggregates/{aggregate_uuid(f'R{rack}')}"
            assert client.put(path, json={"labels": {"rack": f"r{rack}"}}).status == 200
        for name, request in _FLAVORS.items():
            body = {"request": request, "expose": True}
            assert client.put(f"/berth/v1/flavors/{name}", json=body).status == 201
        yield client


class Work:
    """A clock that runs out after some looks, and the calls between these.

    Attributes:
        between: the most between two looks.
        after: those after the look that said that the time is over.
    """

    def __init__(self, looks: int) -> None:
        self._looks = looks
        self._calls = 0
        self.between = self.after = 0

    def clock(self) -> float:
        """The time, which is a look later."""
        self._looks -= 1
        if self._looks >= 0:
            self.between = max(self.between, self._calls)
        if self._looks >= -1:
            self._calls = 0
        return 0.0 if self._looks >= 0 else SECONDS

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count the calls in the block."""

        def count(frame: FrameType, event: str, _: Any) -> None:
            self._calls += event == "call" and "/berth/" in frame.f_code.co_filename

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.after = self._calls


def asked(client: Client, monkeypatch: pytest.MonkeyPatch, name: str, work: Work) -> Response:
    """The answer to a question by such a clock."""
    method, path, body = QUESTIONS[name]
    monkeypatch.setattr(searching, "monotonic", work.clock)
    monkeypatch.setattr(searching, "thread_time", work.clock)
    with work.counted():
        return client.request(method, path, json=body)


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("looks", [40, pytest.param(2_000, marks=pytest.mark.thorough)])
def test_a_question_ends_with_its_budget(
    fleet: Client, monkeypatch: pytest.MonkeyPatch, name: str, looks: int
) -> None:
    """What was cut off says so, or is refused; and neither takes as much work again."""
    # What is kept between questions is made once.
    asked(fleet, monkeypatch, name, Work(WARM))
    work = Work(looks)
    answered = asked(fleet, monkeypatch, name, work)
    assert answered.status in (200, 409, 503), answered.text
    if answered.status == 503:
        assert answered.code == "berth.search.gave_up"
    assert work.between < BETWEEN_MAX
    assert work.after < AFTER_MAX


@pytest.mark.parametrize(("looks", "is_long"), [(40, True), (10**6, False)])
def test_memory_is_returned_to_the_system_after_long_questions(
    fleet: Client, monkeypatch: pytest.MonkeyPatch, looks: int, is_long: bool
) -> None:
    """Its library keeps what was freed; to return it takes too long after each small question."""
    returned: list[bool] = []
    admission = Admission(
        AdmissionSettings(9, 9, 9, 9, 9.0), give_back=lambda: returned.append(True)
    )
    assert isinstance(fleet.transport, WSGITransport)
    inside = fleet.transport.app

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        match_of(environ)
        return admission.run(inside, environ, start_response)

    observed = Client.of(application)
    asked(observed, monkeypatch, "without drained hosts", Work(looks))
    assert bool(returned) is is_long
