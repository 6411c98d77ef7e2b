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
    Capacity,
    Consumer,
    Explanation,
    NewConsumer,
    Placement,
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

__all__ = [
    "Candidate",
    "Candidates",
    "Capacity",
    "Client",
    "Conflict",
    "Consumer",
    "Explanation",
    "Incomplete",
    "NewConsumer",
    "NoOwnApi",
    "NotThere",
    "Placement",
    "Refused",
    "Request",
    "Unreachable",
]
