# SPDX-License-Identifier: Apache-2.0
"""Scenario hosts: simulated agents at one service, all starting at once, and all idle."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import cycle
from typing import Final

from bench.case import Case
from bench.client import Client, UnexpectedStatus
from bench.fleet import SHARES, aggregate_uuid, host_uuid
from bench.host_reshape import host_reshape_case, transport_to
from bench.http1 import Requests
from bench.sample import Round, Sample, Samples, asking, timed
from bench.server import RunningServer
from bench.simulated_hosts import Reports, Shape, SimulatedFleet

HOSTS: Final = 1000

#: The first of the hosts of a round; no other part uses such numbers.
_FIRST: Final = 7_000_000

#: Seconds between two reports of an agent.
_INTERVAL_S: Final = 60

_TREES: Final = "/berth/v1/trees"
#: What the agent reads of each provider.
TREE_PARTS: Final = "include=generation,inventories,traits,aggregates,drains"

#: How large a fleet is whose polls are calculated.
POLLING_HOSTS: Final = 100_000
_POLL_CLIENTS: Final = 4
#: Hosts that poll in turn.
_TURNS: Final = 500


def hosts_cases() -> list[Case]:
    """One that is reshaped, and a fleet; Placement on SQLite answers many writers with 500."""
    return [
        host_reshape_case(),
        Case("hosts", f"{HOSTS:,} hosts in one process", _measure_fleet, for_peer=False),
        poll_case("a host of five providers", 0, first=_FIRST),
        tree_poll_case("a host of five providers", 0, first=_FIRST),
    ]


def poll_cases(size: int) -> list[Case]:
    """Polls of a flat fleet: by hosts without aggregates, by those that have one, and of trees."""
    return [
        poll_case("a host", size),
        poll_case("a host in an aggregate", size, shares=True),
        tree_poll_case("a host", size),
    ]


def poll_case(name: str, size: int, *, first: int = 0, shares: bool = False) -> Case:
    """What the agent of a host without changes asks, and what that takes of the service.

    An agent lists its tree, on a new connection: the interval is longer than a service keeps an
    idle one. If the tree is in aggregates, it also lists the providers that share with them.

    Args:
        size: hosts that poll in turn, from `first` on; 0: one alone.
    """
    rng = random.Random("polls")
    hosts = [host_uuid(first + (rng.randrange(size) if size else 0)) for _ in range(_TURNS)]

    def measure(server: RunningServer, wanted: Round) -> Samples:
        keeping = Requests(server.port, answer_bytes=wanted.answer_bytes)
        closing = Requests(server.port, answer_bytes=wanted.answer_bytes, closes=True)
        made = [each for host in hosts for each in _poll(host, keeping, closing, shares=shares)]
        return _cost_of_polls(_polled(server, made, wanted), requests_each=2 if shares else 1)

    return Case("hosts", f"poll of {name}", measure, has_floor=True)


def tree_poll_case(name: str, size: int, *, first: int = 0) -> Case:
    """The same of an agent that reads whole trees, as it does where the service is berth: one
    conditional request, answered 304.

    Args:
        size: hosts that poll in turn, from `first` on; 0: one alone.
    """
    rng = random.Random("polls of trees")
    hosts = [host_uuid(first + (rng.randrange(size) if size else 0)) for _ in range(_TURNS)]
    paths = {host: f"{_TREES}/{host}?{TREE_PARTS}" for host in hosts}

    def measure(server: RunningServer, wanted: Round) -> Samples:
        closing = Requests(server.port, closes=True)
        with Client(server) as client:
            tags = {host: _tag_of(client, path) for host, path in paths.items()}
        made = [closing.get(paths[host], if_none_match=tags[host]) for host in hosts]
        return _cost_of_polls(_polled(server, made, wanted), requests_each=1)

    return Case("hosts", f"poll of the tree of {name}", measure, for_peer=False)


def _tag_of(client: Client, path: str) -> str:
    """The entity tag of a tree."""
    answer = client.exchange(client.requests.get(path))
    if answer.status != 200:
        raise UnexpectedStatus("GET", path, answer.status, answer.body)
    return answer.tag


def _cost_of_polls(polled: Sample, *, requests_each: int) -> Samples:
    assert polled.processor is not None, "`timed` has measured it"
    each_s = requests_each * polled.processor / polled.operations_count
    share = 100 * each_s * POLLING_HOSTS / _INTERVAL_S
    return {
        "a request": polled,
        "processor time of a poll": Sample([each_s]),
        f"processor, {POLLING_HOSTS:,} hosts a minute": Sample([share], unit="%"),
    }


def _poll(host: str, keeping: Requests, closing: Requests, *, shares: bool) -> Sequence[bytes]:
    """The requests of a poll; the last one closes the connection."""
    tree = f"/resource_providers?in_tree={host}"
    if not shares:
        return [closing.get(tree)]
    sharing = f"/resource_providers?member_of=in:{aggregate_uuid(0)}&required={SHARES}"
    return [keeping.get(tree), closing.get(sharing)]


def _polled(server: RunningServer, requests: Sequence[bytes], wanted: Round) -> Sample:
    """Some clients send the requests, each from its first to its last and again."""
    sample = Sample()
    scripts = [
        asking(cycle(requests).__next__, sample, wanted.seconds) for _ in range(_POLL_CLIENTS)
    ]
    sample.elapsed, sample.processor = timed(server, scripts, wanted)
    return sample


def _measure_fleet(server: RunningServer, wanted: Round) -> Samples:
    """All agents start at once and report again; a new fleet in each round."""
    fleet = SimulatedFleet(
        HOSTS, lambda: transport_to(server), first=_FIRST + HOSTS * wanted.number
    )
    start = _done(fleet.report(Shape.BY_GPU, startup=True))
    steady = _done(fleet.report(Shape.BY_GPU, startup=False))
    assert steady.writes_count == 0, "a steady pass has written something"
    return {
        "start, all": Sample([start.elapsed_s]),
        "start, requests a host": _requests(start),
        "start, put off by the busy service": Sample([start.put_off], unit="requests"),
        "steady pass, all": Sample([steady.elapsed_s]),
        "steady pass, requests a host": _requests(steady),
    }


def _done(reports: Reports) -> Reports:
    for error in reports.errors:
        raise error
    return reports


def _requests(reports: Reports) -> Sample:
    """The number of requests that the service served."""
    return Sample([(reports.requests.total() - reports.put_off) / HOSTS], unit="requests")
