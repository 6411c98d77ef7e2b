# SPDX-License-Identifier: Apache-2.0
"""Counters of a measurement, and a client that repeats one request."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import NamedTuple

from bench.driver import Script, drive
from bench.http1 import Answer
from bench.processor import processor_s
from bench.server import RunningServer

clock = time.perf_counter


@dataclass(slots=True)
class Sample:
    """The result of one round on one server."""

    #: One value for each operation: seconds, or what `unit` says.
    values: list[float] = field(default_factory=list)
    #: From the first operation's start to the last one's end, over all clients; 0: no rate.
    elapsed: float = 0.0
    #: Processor seconds of the server's processes meanwhile, for whatever it did; None: not known.
    processor: float | None = None
    unit: str = "s"
    #: Bytes of an answer.
    answer_bytes: int = 0
    #: Operations that the server refused with 409: another client was faster.
    conflicts_count: int = 0
    #: Operations that the server failed to do, by status; 0: it gave no answer.
    failures: Counter[int] = field(default_factory=Counter)
    #: Acknowledged and not on record, or the other way round; 0 is right.
    lost_count: int = 0

    @property
    def operations_count(self) -> int:
        """How many operations were tried."""
        return len(self.values) + self.conflicts_count + self.failures.total()

    def take(self, answer: Answer, seconds: float) -> bool:
        """Count an operation by its last response, and return whether it succeeded."""
        if 200 <= answer.status < 300 or answer.status == 304:
            self.values.append(seconds)
            self.answer_bytes = len(answer.body)
            return True
        if answer.status == 409:
            self.conflicts_count += 1
        else:
            self.failures[answer.status] += 1
        return False


#: The samples of one round by what was measured; "" where there is one only.
Samples = dict[str, Sample]


@dataclass(frozen=True, slots=True)
class Round:
    """The settings of a round."""

    #: For about how long; what is under way then is finished.
    seconds: float
    #: Which round it is, from 0 on: what is drawn by chance, and what is new, differs.
    number: int
    #: How long one request may take before the measurement is given up.
    request_seconds_max: float
    #: For the floor: bytes of an answer of berth's.
    answer_bytes: int = 0


class Cost(NamedTuple):
    """What a measurement took."""

    elapsed: float
    #: Seconds of the server's processes; None where they were not for this quantity alone.
    processor: float | None = None


def ask(
    server: RunningServer, requests: Iterable[bytes], wanted: Round, *, clients_count: int = 1
) -> Sample:
    """Let some clients send the requests in turn, again and again, after a first one that is not
    counted.

    A first answer that took longer than the whole round should is the only one.

    Raises:
        TimedOut: an answer took too long.
    """
    first, sample, make = Sample(), Sample(), cycle(requests).__next__
    first.elapsed, first.processor = timed(server, [asking(make, first, 0.0)], wanted)
    if first.elapsed > wanted.seconds:
        return first
    scripts = [asking(make, sample, wanted.seconds) for _ in range(clients_count)]
    sample.elapsed, sample.processor = timed(server, scripts, wanted)
    return sample


def asking(make: Callable[[], bytes], sample: Sample, seconds: float) -> Script:
    """A client that asks again and again for some seconds, and at least once.

    Args:
        make: makes the next request, which is not timed.
    """
    end = clock() + seconds
    while True:
        request = make()
        start = clock()
        answer = yield request
        now = clock()
        sample.take(answer, now - start)
        if now >= end:
            return


def timed(server: RunningServer, scripts: Sequence[Script], wanted: Round) -> Cost:
    """Drive clients until they finish, and return what it took."""
    start, processor = clock(), processor_s(server)
    drive(server, scripts, seconds_max=wanted.request_seconds_max)
    return Cost(clock() - start, processor_s(server) - processor)
