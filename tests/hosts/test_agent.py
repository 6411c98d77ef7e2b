# SPDX-License-Identifier: Apache-2.0
"""The life of an agent: its start, its passes, its pauses (spec/compute-side.md 3)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from keystoneauth1 import exceptions

from berth.hosts import BadProviderTree
from berth.hosts.agent import Agent, Orders, Reporter, Woken
from berth.hosts.errors import ComputeError, HostUnreadable, NameTaken, Refused, Unreachable
from berth.hosts.plan import Allocations, Plan
from berth.hosts.provider_tree import ProviderTree
from berth.hosts.report_client import ReportClient
from berth.hosts.service import Answer, Transport
from berth.hosts.tracker import Node, Tracker
from tests.hosts.drivers import GPUHost
from tests.hosts.hosts import AFTER, BEFORE, Answered, gpu_host, node, three_guests, tracker
from tests.hosts.stage import Stage, drawn

INTERVAL_S = 60.0


class Told:
    """A tracker whose reports end as the test decides."""

    def __init__(self, *ends: Exception | None) -> None:
        self._ends = [*ends]
        self.startups: list[bool] = []
        self.names: list[str] = []

    def report(self, node: Node, *, startup: bool) -> Plan:
        """End as the test decided for the next report."""
        self.startups.append(startup)
        self.names.append(node.name)
        if (end := self._ends.pop(0)) is not None:
            raise end
        return Plan()

    def is_reshape_pending(self, node: Node) -> bool:
        return False


class Night:
    """Replaces sleep: wakes the agent as the test decides, and records the requested times."""

    def __init__(self, *woken: Woken) -> None:
        self._woken = iter([*woken, Woken.TO_STOP])
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> Woken:
        self.slept.append(seconds)
        return next(self._woken)

    def clock(self) -> float:
        return sum(self.slept)


def agent(
    reporters: Iterator[Reporter],
    wait: Callable[[float], Woken],
    *,
    nodes: Sequence[str] = ("cn1",),
    clock: Callable[[], float] = lambda: 1.0,
    let_go: Callable[[], None] = lambda: None,
    take_over: Callable[[Node, NameTaken], Node] | None = None,
) -> Agent:
    """An agent for some nodes that retries its start for a minute."""
    return Agent(
        lambda: Orders(
            next(reporters),
            [node(name) for name in nodes],
            interval_s=INTERVAL_S,
            start_patience_s=60.0,
            let_go=let_go,
            take_over=take_over,
        ),
        wait=wait,
        clock=clock,
        now=clock,
        rng=Random(1),
    )


def test_it_lets_go_of_the_service_before_each_pause() -> None:
    """It closes the connection, also after a failed start."""
    pauses: list[str] = []
    night = Night(*[Woken.BY_TIME] * 3)

    def wait(seconds: float) -> Woken:
        pauses.append("waits")
        return night(seconds)

    hosts = iter([Told(Unreachable("no answer"), None, None, None)])
    made = agent(hosts, wait, let_go=lambda: pauses.append("let go"))
    made.start()
    made.run()
    assert pauses == ["let go", "waits"] * 4


def test_a_reshape_that_is_needed_later_waits(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent logs it once and reports it as pending; it sends nothing."""

    class Still:
        """A host that changes nothing."""

        def update_provider_tree(
            self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
        ) -> None:
            """Leave the tree as it is."""

    stage.show(BEFORE)
    drivers = Still(), three_guests()
    started = agent(
        (tracker(ReportClient(stage.transport), driver) for driver in drivers),
        Night(Woken.TO_RELOAD, Woken.BY_TIME),
    )
    started.start()
    started.run()
    assert started.state.nodes["cn1"].needs_reshape
    assert caplog.text.count("needs a reshape") == 1
    assert stage.picture() == drawn(BEFORE)


def test_a_start_outlasts_a_service_that_is_not_there_yet(caplog: pytest.LogCaptureFixture) -> None:
    """It retries after growing pauses, and logs each."""
    told = Told(*[Unreachable("no answer")] * 5, None)
    night = Night(*[Woken.BY_TIME] * 5)
    patient = agent(iter([told]), night, clock=night.clock)
    assert patient.start() == {}
    for slept, longest in zip(night.slept, [1, 2, 4, 8, 16], strict=True):
        assert longest / 2 <= slept <= longest
    assert caplog.text.count("no answer; retrying in") == 5


def test_a_caller_whom_keystone_does_not_know_is_not_tried_again() -> None:
    """Such an error does not go away by itself."""

    class Keystone:
        """Keystone, refusing the credentials."""

        def request(self, url: str, method: str, **options: Any) -> Answer:
            """Raise as keystoneauth does, whatever the arguments."""
            raise exceptions.Unauthorized("wrong password", http_status=401)

    night = Night()
    refused = agent(iter([tracker(ReportClient(Keystone()), three_guests())]), night)
    with pytest.raises(Refused, match="was answered 401: by Keystone: wrong password"):
        refused.start()
    assert not night.slept


class Failing:
    """A service whose database fails for some requests: it answers 500 and does nothing.

    Args:
        times: by the beginning of the request, how often it fails.
    """

    def __init__(self, transport: Transport, times: Mapping[str, int]) -> None:
        self._transport = transport
        self._times = dict(times)

    def request(self, url: str, method: str, **options: Any) -> Answer:
        """Send a request, or answer 500."""
        for beginning, times in self._times.items():
            if times and f"{method} {url}".startswith(beginning):
                self._times[beginning] -= 1
                return Answered(500, '{"errors": [{"detail": "Deadlock found"}]}')
        return self._transport.request(url, method, **options)


def test_a_start_outlasts_a_service_that_fails(stage: Stage) -> None:
    """The 500 may be the answer to a read or to the reshape itself."""
    stage.show(BEFORE)
    service = Failing(stage.transport, {"GET": 1, "POST /reshaper": 2})
    night = Night(*[Woken.BY_TIME] * 3)
    patient = agent(iter([tracker(ReportClient(service), three_guests())]), night)
    assert patient.start() == {}
    assert stage.picture() == drawn(AFTER)
    assert len(night.slept) == 3


def test_a_service_that_fails_for_good_ends_a_start_after_its_patience(stage: Stage) -> None:
    """The error is that of the service, and nothing has changed."""
    stage.show(BEFORE)
    service = Failing(stage.transport, {"POST /reshaper": 1000})
    night = Night(*[Woken.BY_TIME] * 20)
    patient = agent(
        iter([tracker(ReportClient(service), three_guests())]), night, clock=night.clock
    )
    with pytest.raises(Unreachable, match=r"^POST /reshaper was answered 500: Deadlock found$"):
        patient.start()
    assert 30 < night.clock() <= 60
    assert "i1: cn1 MEMORY_MB=2048 VCPU=2 VGPU=1" in stage.picture()


def test_a_start_that_waits_can_be_stopped_and_told_better() -> None:
    """SIGHUP loads a corrected configuration at once; SIGTERM ends it."""
    first, second = Told(Unreachable("wrong port")), Told(Unreachable("no answer"))
    waiting = agent(iter([first, second]), Night(Woken.TO_RELOAD))
    with pytest.raises(KeyboardInterrupt):
        waiting.start()
    assert second.startups == [True]


def test_a_start_goes_on_through_conflicts(stage: Stage) -> None:
    """Scenario F4: four conflicts in a row, because a new guest comes each time; meanwhile the
    reshape is pending.

    nova gives up after four and continues with the old tree.
    """
    stage.show(BEFORE)
    host = gpu_host(
        i1={"84": 1}, i2={"84": 2}, i3={"85": 1}, **{f"late{n}": {"85": 1} for n in range(3)}
    )
    coming = iter(range(4))

    class Busy:
        """The host; a guest comes between the agent's read and its write."""

        def update_provider_tree(
            self, provider_tree: ProviderTree, nodename: str, allocations: Allocations | None = None
        ) -> None:
            """Claim for a new guest, and update as the host does."""
            host.update_provider_tree(provider_tree, nodename, allocations)
            if (number := next(coming, None)) is not None:
                stage.hold(f"late{number}", "cn1 VCPU=1 VGPU=1" if number < 3 else "cn1 VCPU=1")

    pending = []

    def wait(seconds: float) -> Woken:
        """Record the state that the agent reports."""
        pending.append(busy.state.nodes["cn1"].needs_reshape)
        return Woken.BY_TIME

    busy = agent(iter([tracker(ReportClient(stage.transport), Busy())]), wait)
    busy.start()
    assert pending == [True] * 4
    assert not busy.state.nodes["cn1"].needs_reshape
    late = [f"    late{number}: cn1 VCPU=1, cn1_pci_85 VGPU=1" for number in range(3)]
    assert stage.picture() == drawn("\n".join([AFTER.rstrip(), *late, "    late3: cn1 VCPU=1"]))


def test_one_node_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    """Neither at the start nor later; a node that has not started yet is retried."""
    told = Told(BadProviderTree(["total is missing"]), None, None, None, ValueError("oh"), None)
    night = Night(Woken.BY_TIME)
    several = agent(iter([told]), night, nodes=["a", "b", "c"])
    assert list(several.start()) == ["a"]
    assert "a could not be reported: total is missing" in caplog.text
    several.run()
    assert told.names == [*"abc", *"abc"]
    assert told.startups == [True] * 4 + [False] * 2
    assert [several.state.nodes[name].error for name in "abc"] == ["", "ValueError: oh", ""]
    # Two of three are well: the next pass is not put off for the third's sake.
    assert night.slept[-1] / INTERVAL_S == pytest.approx(1, rel=0.1)


def test_a_service_that_does_not_answer_is_not_asked_for_every_node() -> None:
    """The nodes that were skipped come first in the next pass: the failure may concern one node
    only."""
    told = Told(None, None, None, None, Unreachable("no answer"), None, None, Unreachable("no"))
    several = agent(iter([told]), Night(Woken.BY_TIME, Woken.BY_TIME), nodes=["a", "b", "c"])
    several.start()
    several.run()
    assert told.names == [*"abc", *"ab", *"cab"]
    assert several.state.nodes["c"].error == ""


def test_the_node_for_which_the_service_did_not_answer_comes_last() -> None:
    """Also after nodes that reported successfully: if it fails again, they do not wait for it."""
    told = Told(None, HostUnreadable("not yet"), None, Unreachable("no"), *[None] * 4)
    several = agent(iter([told]), Night(*[Woken.BY_TIME] * 3), nodes=["a", "b", "c"])
    several.start()
    several.run()
    assert told.names == [*"abc", *"b", *"b", *"acb"]


def test_a_node_is_taken_over_once_though_the_service_falls_then() -> None:
    """The service fails during the takeover; the next pass continues with the new uuid, and the
    other node is not affected."""
    taken = NameTaken("POST /resource_providers", status=409, code="", detail="taken")
    told = Told(taken, Unreachable("it falls"), None, None, None, None)
    asked = []

    def take_over(one: Node, _: NameTaken) -> Node:
        asked.append(one)
        return replace(one, uuid=node("the same of old").uuid)

    several = agent(
        iter([told]), Night(*[Woken.BY_TIME] * 2), nodes=["a", "b"], take_over=take_over
    )
    several.start()
    several.run()
    assert told.names == [*"aa", *"ba", *"ba"]
    assert asked == [node("a")]


def test_a_start_in_which_no_node_can_be_reported_fails() -> None:
    """The error is that of the first node."""
    told = Told(BadProviderTree(["one"]), BadProviderTree(["two"]))
    several = agent(iter([told]), Night(), nodes=["a", "b"])
    with pytest.raises(BadProviderTree, match="one"):
        several.start()


def test_a_new_name_reaches_the_service(stage: Stage) -> None:
    """The provider keeps its uuid and its allocations."""
    stage.show("""
        cn1  VCPU=8
        i1: cn1 VCPU=2
    """)
    host = GPUHost({})
    tracker(ReportClient(stage.transport), host).report(Node(node().uuid, "cn9"), startup=False)
    assert stage.picture() == drawn("cn9  VCPU=8\ni1: cn9 VCPU=2")


def test_failures_are_told_once_and_slow_it_down(caplog: pytest.LogCaptureFixture) -> None:
    """The agent logs each kind of failure once, and its end; then the pauses are the usual ones
    again."""
    caplog.set_level(logging.INFO)
    told = Told(None, *[Unreachable("no answer")] * 5, ValueError("a mistake"), None, None)
    night = Night(*[Woken.BY_TIME] * 8)
    failing = agent(iter([told]), night)
    failing.start()
    failing.run()
    for slept, factor in zip(night.slept, [1, 2, 4, 8, 16, 16, 16, 1, 1], strict=True):
        assert slept / INTERVAL_S == pytest.approx(factor, rel=0.1)
    assert caplog.text.count("no answer") == 1
    assert caplog.text.count("cn1 is reported again") == 1
    assert failing.state.nodes["cn1"].error == ""


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (ComputeError("no such driver"), "is unchanged: no such driver"),
        (RuntimeError("no such device"), "is unchanged: RuntimeError: no such device"),
    ],
)
def test_the_configuration_is_read_again_when_it_is_told_to(
    caplog: pytest.LogCaptureFixture, fault: Exception, told: str
) -> None:
    """An invalid one leaves the old one in force, whatever a driver raises."""
    first, second = Told(None), Told(None, None)

    def reporters() -> Iterator[Told]:
        yield first
        yield second
        raise fault

    reloaded = agent(reporters(), Night(Woken.TO_RELOAD, Woken.TO_RELOAD))
    reloaded.start()
    reloaded.run()
    assert (first.startups, second.startups) == ([True], [False, False])
    assert told in caplog.text


def test_the_pauses_of_a_report_double_up_to_a_quarter_of_a_minute(stage: Stage) -> None:
    """Each is in the upper half of its range, so that hosts that collided once do not collide
    again."""

    class Away:
        """A driver whose host does not answer."""

        def update_provider_tree(self, tree: object, nodename: str, held: object = None) -> None:
            raise Unreachable("no answer")

    longest = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
    pauses: list[float] = []
    client = ReportClient(stage.transport)
    attempts = len(longest) + 1
    reports = Tracker(client, Away(), attempts_max=attempts, pause=pauses.append, rng=Random(1))
    with pytest.raises(Unreachable):
        reports.report(node(), startup=True)
    assert all(most / 2 <= pause <= most for pause, most in zip(pauses, longest, strict=True))
