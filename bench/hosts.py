# SPDX-License-Identifier: Apache-2.0
"""Scenario hosts: simulated agents at one service, when all start at once and when all is quiet."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Final

from bench.case import Case
from bench.fleet import host_uuid
from bench.host_reshape import host_reshape_case, transport_to
from bench.http1 import Requests
from bench.memory import worker_ids
from bench.sample import Round, Sample, Samples, ask
from bench.server import RunningServer
from bench.simulated_hosts import Reports, Shape, SimulatedFleet

HOSTS: Final = 1000

#: The first of the hosts of a round; nobody else has such numbers.
_FIRST: Final = 7_000_000

#: Seconds between two reports of an agent.
_INTERVAL_S: Final = 60

#: How large a fleet is whose idle load is reckoned.
_LARGE: Final = 100_000


def hosts_cases() -> list[Case]:
    """One that is reshaped, and a fleet; the original on SQLite answers many writers with 500."""
    return [
        host_reshape_case(),
        Case("hosts", f"{HOSTS:,} hosts in one process", _measure_fleet, for_peer=False),
        Case("hosts", "a host with nothing to say", _measure_idle, for_peer=False),
    ]


def _measure_fleet(server: RunningServer, wanted: Round) -> Samples:
    """They start at once, and report again; another fleet in each round."""
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
    """Those that the service has served."""
    return Sample([(reports.requests.total() - reports.put_off) / HOSTS], unit="requests")


def _measure_idle(server: RunningServer, wanted: Round) -> Samples:
    """What a pass of a host at rest costs the service: a connection, and one request.

    The share of one processor is reckoned from it, for fleets that report once a minute.
    """
    look = Requests(server.port).get(f"/resource_providers?in_tree={host_uuid(_FIRST)}")
    before = _processor_s(server)
    asked = ask(replace(server, keeps_connections=False), look, wanted, clients_count=4)
    # The first one was not counted.
    each = (_processor_s(server) - before) / (len(asked.values) + 1)
    return {
        "time of a pass": asked,
        "processor time of a pass": Sample([each]),
        **{
            f"share of a processor, {hosts:,} hosts": Sample(
                [100 * each * hosts / _INTERVAL_S], unit="%"
            )
            for hosts in (HOSTS, _LARGE)
        },
    }


def _processor_s(server: RunningServer) -> float:
    """The time that the server's workers have spent so far."""
    ticks = 0
    for worker in worker_ids(server.process_id):
        fields = Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")
