# SPDX-License-Identifier: Apache-2.0
"""Histories played to both servers, one after the other, until enough requests have been sent."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from bench.peer import run_peer
from bench.server import run_berth
from compare.differences import Difference, Kind
from compare.histories.history import History
from compare.histories.replay import renamed, shortest
from compare.histories.reset import empty
from compare.judge import Judgement, judge
from compare.script.step import Step, known_uuids
from compare.wire import NoAnswer

#: Requests of a history before it takes its world away.
_STEPS_COUNT = 300
#: After so long the shortest replay so far will do.
_SHRINK_SECONDS_MAX = 45.0


#: Differences that look alike: kind, part of the answer, method, first segment of the path.
Sort = tuple[Kind, str, str, str]


@dataclass(slots=True)
class Finding:
    """A request that showed a difference, and the shortest history that still shows it.

    The replay is empty where a difference of this sort has been shrunk before.
    """

    seed: str
    step: Step
    difference: Difference
    replay: Sequence[Step] = ()

    @property
    def sort(self) -> Sort:
        """What this difference has in common with others like it."""
        kind, part = self.difference.kind, self.difference.part
        return kind, part, self.step.method, self.step.path.partition("?")[0].split("/")[1]


@dataclass(slots=True)
class Tally:
    """What histories have shown so far."""

    requests_count: int = 0
    histories_count: int = 0
    #: Histories that ended early: a deliberate difference left two worlds that differ.
    parted_count: int = 0
    #: Histories that ended because a server did not answer: which, and what it was asked.
    unanswered: list[str] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    #: Answers by status, of the histories alone: a history that is refused everything shows little.
    statuses: Counter[int] = field(default_factory=Counter)


class Players:
    """berth and Placement, each with an empty database, started anew when one gets stuck."""

    def __init__(self) -> None:
        self._servers = ExitStack()
        self._rounds_count = 0
        self.start()

    def start(self) -> None:
        """Stop what runs and begin with empty databases."""
        self._servers.close()
        # One process: with several, Placement answers from names that another has deleted.
        self._peer = self._servers.enter_context(run_peer(processes=1))
        self._berth = self._servers.enter_context(run_berth())

    def close(self) -> None:
        """Stop both servers."""
        self._servers.close()

    def judge(self, step: Step, named: set[str]) -> Judgement:
        """Send one request to both; `named` takes in the uuids that it names."""
        named |= known_uuids([step])
        return judge(self._berth, self._peer, step, named)

    def empty(self) -> None:
        """Leave nothing of the history before."""
        for server in (self._berth, self._peer):
            empty(server)

    def shows(self, steps: Sequence[Step], expected: Difference) -> bool:
        """Play steps in a world of their own: does the last show the same difference?"""
        self._rounds_count += 1
        self.empty()
        named: set[str] = set()
        *before, last = renamed(steps, self._rounds_count)
        if any(self.judge(step, named).is_parted for step in before):
            return False
        differences = self.judge(last, named).unexplained
        return any(
            (each.kind, each.part) == (expected.kind, expected.part) for _, each in differences
        )


def play(
    players: Players, requests_count: int, seed: int, tell: Callable[[Finding], None]
) -> Iterator[Tally]:
    """Play histories until `requests_count` requests have been sent; the tally after each.

    Args:
        players: the servers.
        requests_count: how many requests, at least: a history is played to its end.
        seed: history k is drawn from `<seed>.<k>`.
        tell: called with each difference, once its history is shrunk.
    """
    tally = Tally()
    while tally.requests_count < requests_count:
        tally.histories_count += 1
        left = requests_count - tally.requests_count
        history = History(f"{seed}.{tally.histories_count}", min(_STEPS_COUNT, left))
        try:
            _play_one(players, history, f"{seed}.{tally.histories_count}", tally, tell)
            players.empty()
        except NoAnswer as error:
            tally.unanswered.append(str(error))
            players.start()
        yield tally


def _play_one(
    players: Players, history: History, seed: str, tally: Tally, tell: Callable[[Finding], None]
) -> None:
    """Play one history up to its end, or to a difference unlike those before."""
    named: set[str] = set()
    written: list[Step] = []
    played: list[Step] = []
    for step in history.steps():
        judgement = players.judge(step, named)
        tally.requests_count += judgement.requests_count
        tally.explained += judgement.explained
        tally.statuses[judgement.answer.status] += 1
        if judgement.unexplained:
            new = _note_found(tally, seed, judgement)
            if new is not None:
                new.replay = _shrink(players, [*played, step], [*written, step], new.difference)
                tell(new)
                return
        if judgement.is_parted:
            tally.parted_count += 1
            return
        history.picture.learn(step, judgement.answer)
        played.append(step)
        if step.method != "GET" and judgement.answer.status < 300:
            written.append(step)


def _note_found(tally: Tally, seed: str, judgement: Judgement) -> Finding | None:
    """Count what a judgement found; the gravest of it if nothing like it was found before."""
    sorts = {finding.sort for finding in tally.findings}
    found_now = [Finding(seed, step, difference) for step, difference in judgement.unexplained]
    tally.findings += found_now
    new = [finding for finding in found_now if finding.sort not in sorts]
    return min(new, key=lambda finding: finding.difference.kind, default=None)


def _shrink(
    players: Players, steps: Sequence[Step], writes: Sequence[Step], difference: Difference
) -> Sequence[Step]:
    """The shortest part of a history that shows a difference; accepted writes matter most."""

    give_up_at = time.monotonic() + _SHRINK_SECONDS_MAX

    def shows(some: Sequence[Step]) -> bool:
        return players.shows(some, difference)

    if shows(writes):
        steps = writes
    elif not shows(steps):
        return steps
    return shortest(steps, shows, give_up=lambda: time.monotonic() > give_up_at)
