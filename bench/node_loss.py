# SPDX-License-Identifier: Apache-2.0
"""What clients see when a cluster node is killed while they write through all nodes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from bench.claims import absent, claim_on, new_consumer
from bench.driver import Script, drive_each
from bench.fleet import CLAIM, host_uuid
from bench.http1 import Requests
from bench.sample import Sample, Samples, clock
from bench.server import RunningServer
from tests.servers.galera import Galera

_CLIENTS_EACH: Final = 4
_HOSTS: Final = 1000
#: For how long is written before the node is killed, and how long at most until writes go on.
_BEFORE_S: Final = 2.0
_AFTER_S: Final = 3.0
_RECOVERY_S_MAX: Final = 60.0

_SECONDS: Final = "seconds"

#: As Galera comes; the tests notice a loss sooner.
_DEFAULTS: Final = "evs.suspect_timeout=PT5S;evs.inactive_timeout=PT15S;evs.keepalive_period=PT1S"


@dataclass(slots=True)
class Story:
    """The events, by the clock of the clients."""

    begun_at: float = field(default_factory=clock)
    killed_at: float | None = None
    #: The first acknowledgement of a write that was sent after the kill, at a node that is left.
    recovered_at: float | None = None
    #: Acknowledgements by the nodes that are left.
    acknowledged_at: list[float] = field(default_factory=list)
    #: Other answers, by status; 0: none.
    refused: Counter[int] = field(default_factory=Counter)
    refused_at_lost: Counter[int] = field(default_factory=Counter)
    #: Acknowledgements by the lost node of writes that were sent after the kill.
    acknowledged_at_lost: int = 0
    #: The consumers of all that was acknowledged, by whichever node.
    acknowledged: list[str] = field(default_factory=list)

    def take(
        self, status: int, consumer: str, *, sent_at: float, now: float, is_lost: bool
    ) -> None:
        """Note the answer to a claim.

        Args:
            is_lost: whether it was sent to the node that is to be killed.
        """
        is_after = self.killed_at is not None and sent_at >= self.killed_at
        if status == 204:
            self.acknowledged.append(consumer)
        if status != 204:
            (self.refused_at_lost if is_lost else self.refused)[status] += 1
        elif is_lost:
            self.acknowledged_at_lost += is_after
        else:
            self.acknowledged_at.append(now)
            if is_after and self.recovered_at is None:
                self.recovered_at = now

    def is_over(self, now: float) -> bool:
        """Whether writes have resumed for a while, or have not."""
        if self.recovered_at is not None:
            return now > self.recovered_at + _AFTER_S
        return self.killed_at is not None and now > self.killed_at + _RECOVERY_S_MAX


def lose_a_node(cluster: Galera, server: RunningServer, round_number: int) -> Samples:
    """Kill the last node as clients write through all, wait until writes go on, bring it back.

    All that any node acknowledged is looked for through the lost node then.

    Args:
        server: with a server at each node, the last one at the node that is lost.
        round_number: a round claims for other consumers than the rounds before it.
    """
    for node in cluster.nodes:
        node.administer(f"SET GLOBAL wsrep_provider_options = '{_DEFAULTS}'")
    *left, lost = (server, *server.others)
    story = Story()
    scripts = [
        (
            node,
            _writing(
                node, story, random.Random(f"loss-{round_number}-{place}"), is_lost=node is lost
            ),
        )
        for place, node in enumerate([*left, lost] * _CLIENTS_EACH)
    ]
    drive_each([*scripts, (left[0], _killing(cluster, left[0], story))])
    start = clock()
    cluster.start()
    back = Sample([clock() - start], unit=_SECONDS)
    back.lost_count = absent(lost, story.acknowledged)
    return {**samples_of(story), "from its start until the lost node is synced": back}


def _writing(server: RunningServer, story: Story, rng: random.Random, *, is_lost: bool) -> Script:
    """A client that claims on random hosts until the end."""
    requests = Requests(server.port)
    now = clock()
    while not story.is_over(now):
        host, sent_at = host_uuid(rng.randrange(_HOSTS)), now
        consumer = new_consumer(rng)
        answer = yield claim_on(requests, host, CLAIM, consumer, "bench-loss")
        now = clock()
        story.take(answer.status, consumer, sent_at=sent_at, now=now, is_lost=is_lost)


def _killing(cluster: Galera, server: RunningServer, story: Story) -> Script:
    """A client that requests the root until it is time to kill a node."""
    requests = Requests(server.port)
    while clock() < story.begun_at + _BEFORE_S:
        yield requests.get("/")
    # Before, not after: the node is dead some time before the call returns.
    story.killed_at = clock()
    cluster.nodes[-1].kill()


def samples_of(story: Story) -> Samples:
    """The story as samples; what has not happened has no values.

    What was not acknowledged is with the writes, by the status of the answer.
    """
    assert story.killed_at is not None
    at = story.acknowledged_at
    gap = max(later - earlier for earlier, later in pairwise(at))
    recovery = [] if story.recovered_at is None else [story.recovered_at - story.killed_at]
    return {
        "from the kill to the first write": Sample(recovery, unit=_SECONDS),
        "longest time without a write": Sample([gap], unit=_SECONDS),
        "writes through the other nodes": Sample(
            [len(story.acknowledged_at)], unit="claims", failures=story.refused
        ),
        "writes through the lost node, from the kill on": Sample(
            [story.acknowledged_at_lost], unit="claims", failures=story.refused_at_lost
        ),
    }
