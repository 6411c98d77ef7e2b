# SPDX-License-Identifier: Apache-2.0
"""Every search ends, and one that is ended early never reports that nothing fits.

The clock of these tests counts its calls, so a part of the budget is one step of the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest

from berth.api import request as searching
from berth.api.environ import CLIENT_GONE
from berth.index.memory import Memory
from tests.brute_force import answer
from tests.candidates.engine import Stand
from tests.candidates.test_limits import BREADTH_FIRST, RANDOM, WAYS, devices
from tests.client import Client
from tests.queries import parse_query

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

STEPS = 400


def groups(*wanted: str) -> str:
    """Suffixed groups."""
    return "&".join(f"resources_{number}={resources}" for number, resources in enumerate(wanted))


SIXTEEN = "host\n" + devices(64, "VGPU=1"), groups(*["VGPU:1"] * 16) + "&group_policy=isolate"
#: Sums say that it could be; only trying tells that no device has room for three.
BINS = (
    "host\n" + devices(12, "VCPU=1000"),
    groups(*(f"VCPU:{amount}" for amount in range(334, 364))) + "&group_policy=none&limit=10",
)
#: Twenty trees of twenty shapes, whose nodes are of five kinds; each has a place for every group.
TWENTY_SHAPES = "\n".join(
    f"host{number}  DISK_GB=8\n"
    + "\n".join(
        f"  host{number}_{place}  VCPU=8  CUSTOM_T{place if number >> place & 1 else 'X'}"
        for place in range(5)
    )
    for number in range(20)
)
MANY_GROUPS = (
    "resources=DISK_GB:8&group_policy=none&limit=30&same_subtree="
    + ",".join(f"_{number}" for number in range(40))
    + "".join(f"&required_{n}=in:CUSTOM_TX,CUSTOM_T{n % 5}" for n in range(40))
)

#: Lets a budget end after so many looks at the clock, in seconds a look or in parts of the budget.
Clock = Callable[[int], None]


@pytest.fixture
def end_after(monkeypatch: pytest.MonkeyPatch, stand: Stand) -> Clock:
    """Sets the steps of the following searches."""
    seconds = 1 << 10

    def begin(steps: int) -> None:
        looks, now = count(), [0.0]

        def look() -> float:
            now[0] = seconds * next(looks) / steps
            return now[0]

        monkeypatch.setattr(searching, "monotonic", look)
        monkeypatch.setattr(searching, "thread_time", lambda: now[0])
        monkeypatch.setattr(searching, "seconds_within", lambda most, wanted: float(seconds))

    return begin


@pytest.mark.parametrize("options", [*WAYS, BREADTH_FIRST], ids=str)
def test_packing_bins_is_given_up(stand: Stand, end_after: Clock, options: dict[str, Any]) -> None:
    """If no candidate was found in time, it is an error and not an empty answer; the message says
    what helps."""
    standing = stand(BINS[0])
    end_after(STEPS)
    refused = standing.with_settings(**options).get(f"/allocation_candidates?{BINS[1]}")
    assert (refused.status, refused.code) == (503, "placement.search_gave_up")
    for part in ("does not mean that nothing fits", "in_tree"):
        assert part in refused.detail


@pytest.mark.parametrize("options", [{}, RANDOM], ids=str)
def test_what_was_found_in_time_is_answered(
    stand: Stand, end_after: Clock, options: dict[str, Any]
) -> None:
    """Without a limit, 16 groups on 64 devices have more assignments than can be returned; those
    that were found in time are returned."""
    standing = stand(SIXTEEN[0])
    end_after(STEPS)
    candidates = standing.queried(SIXTEEN[1], **options).candidates
    assert 0 < len(candidates) < STEPS
    assert len({*candidates}) == len(candidates)


def test_an_answer_is_no_larger_than_there_is_room_for(stand: Stand) -> None:
    """The response ends with the candidate that reaches the limit of its size."""
    client = stand(SIXTEEN[0]).with_settings(candidates_answer_mib_max=1)
    answered = client.get(f"/allocation_candidates?{SIXTEEN[1]}")
    assert len(answered.body) == pytest.approx(2**20, rel=0.1)


def test_blocks_of_trees_that_do_not_fit_use_up_the_time_too(
    stand: Stand, end_after: Clock
) -> None:
    """The clock is looked at for each part of the fleet, even if none has a candidate."""
    standing = stand("\n".join(f"host{n}  VCPU=8(used:8)  CUSTOM_T{n}" for n in range(20)))
    end_after(15)
    assert standing.client.get("/allocation_candidates?resources=VCPU:1").status == 503


def test_time_that_is_over_does_not_hide_an_unknown_name(stand: Stand, end_after: Clock) -> None:
    """The time ends before the second group is tested, but its unknown trait is still reported."""
    standing = stand("host  VCPU=8")
    end_after(1)
    query = "resources=VCPU:1&resources_A=VCPU:1&required_A=CUSTOM_NOBODYS"
    refused = standing.client.get(f"/allocation_candidates?{query}")
    assert (refused.status, "CUSTOM_NOBODYS" in refused.detail) == (400, True)


def test_each_shape_uses_up_time_and_leaves_nothing_behind(stand: Stand, end_after: Clock) -> None:
    """Tests of a shape that were cut short are not kept: a later request gets its candidates."""
    standing = stand(TWENTY_SHAPES)
    for steps in (2, 20, 40):
        end_after(steps)
        assert standing.client.get(f"/allocation_candidates?{MANY_GROUPS}").status == 503
    end_after(10**9)
    again = standing.queried(MANY_GROUPS)
    standing.forget()
    assert standing.queried(MANY_GROUPS) == again
    assert len(again.candidates) == 30


def test_a_search_that_ends_in_time_is_whole(stand: Stand, end_after: Clock) -> None:
    """A budget that is not used up changes nothing."""
    standing = stand("host\n" + devices(3, "VGPU=2"))
    end_after(STEPS)
    text = groups("VGPU:1", "VGPU:1") + "&group_policy=isolate"
    assert len(standing.queried(text, candidates_answer_mib_max=1).candidates) == 6


def test_a_search_whose_client_has_gone_ends(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search looks for its client four times a second by its own clock, not at every step."""
    app, looks, steps, now = stand(BINS[0]).app(), count(1), count(), [monotonic()]

    def look(began: float = now[0]) -> float:
        now[0] = began + next(steps) / 1000
        return now[0]

    monkeypatch.setattr(searching, "monotonic", look)
    monkeypatch.setattr(searching, "thread_time", lambda: now[0])

    def leaving(environ: WSGIEnvironment, start_response: StartResponse) -> Iterator[bytes]:
        environ[CLIENT_GONE] = lambda: next(looks) == 5
        return iter(app(environ, start_response))

    assert Client.of(leaving).get(f"/allocation_candidates?{BINS[1]}").status == 503
    assert next(looks) == 6
    assert next(steps) / 1000 == pytest.approx(1.0, abs=0.3)


def test_what_searches_keep_is_bounded(stand: Stand) -> None:
    """A memory that is full drops everything, and the answers stay the same."""
    standing = stand(TWENTY_SHAPES)
    queries = [f"resources=DISK_GB:{n},VCPU:{n}" for n in (1, 2, 3)]
    limited = [f"resources=VCPU:1&limit={n}" for n in range(1, 41)]
    for bytes_max in (10, 30_000, 100_000):
        memory = Memory(bytes_max)
        standing.forget(memory)
        for text in [*queries, *queries]:
            whole = answer(standing.fleet, parse_query(text, 39), 39)
            assert standing.queried(text) == whole
            assert kept_bytes(memory) <= bytes_max
        for text in limited:
            standing.queried(text)
            assert kept_bytes(memory) <= bytes_max
    memory = Memory()
    standing.forget(memory)
    for text in queries + limited:
        standing.queried(text)
    assert kept_bytes(memory) > 100_000, "the bounds above have been met"


def kept_bytes(memory: Memory) -> int:
    """The size of all values in a memory, except texts of trees."""
    values: list[dict[Any, Any]] = [memory._values, *memory._tables.values()]
    return sum(sizes(each) for kept in values for each in kept.values())


def sizes(value: Any) -> int:
    """The size of one value: scopes are small, and assignments are stored several at once."""
    if isinstance(value, tuple) and not hasattr(value, "size"):
        return sum(getattr(each, "size", 0) for each in value)
    return getattr(value, "size", 0)
