# SPDX-License-Identifier: Apache-2.0
"""A client of the API, for programs: ask where something fits, claim it, and see who holds what.

    from berth.client import Client

    berth = Client.at("http://berth.example:8778", token)
    for candidate in berth.candidates("resources=VCPU:8,MEMORY_MB:16384").candidates:
        print(candidate.host, candidate.allocations)

It needs only `pip install berthd`. The command line uses it too.
"""

from berth.client.answers import (
    Candidate,
    Candidates,
    Capacities,
    Capacity,
    Changes,
    Consumer,
    Explanation,
    Fleet,
    Lease,
    NewConsumer,
    Placement,
    Placements,
)
from berth.client.client import Client, Request
from berth.client.errors import (
    Conflict,
    Incomplete,
    NoOwnApi,
    NotThere,
    Refused,
    Unreachable,
)
from berth.client.replica import Change, Replica

__all__ = [
    "Candidate",
    "Candidates",
    "Capacities",
    "Capacity",
    "Change",
    "Changes",
    "Client",
    "Conflict",
    "Consumer",
    "Explanation",
    "Fleet",
    "Incomplete",
    "Lease",
    "NewConsumer",
    "NoOwnApi",
    "NotThere",
    "Placement",
    "Placements",
    "Refused",
    "Replica",
    "Request",
    "Unreachable",
]
