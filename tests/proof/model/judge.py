# SPDX-License-Identifier: Apache-2.0
"""Plays histories to a service of several workers, and compares each answer with the plain model's.

After each write, another worker shows what the write has named, and answers some questions again
that were asked before it. Some answers, and all of what the model does not know, the candidates,
are compared byte for byte with those of a service that has just started: caches never show.
"""

from __future__ import annotations

import json
import re
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from email.utils import parsedate_to_datetime
from random import Random
from typing import Any, Final, NamedTuple

import pytest

from compare.histories.history import WRITERS, History
from compare.histories.replay import shortest
from compare.histories.spoil import well_formed
from compare.histories.writers import Writer, show_root
from compare.script.step import Step, known_uuids, request
from compare.wire import Answer
from tests.client import Response
from tests.effort import repeat_with
from tests.proof.model.plain_model import PlainModel
from tests.proof.model.plain_server import PlainServer, Unjudged

#: What a failing history begins with, so that its lines can be pasted into a shell.
PRELUDE: Final = r"""
# BERTH=http://127.0.0.1:8778
api() {
  curl -s -w ' # %{http_code}\n' -X "$2" "$BERTH$3" ${4:+-d "$4"} \
    -H "openstack-api-version: placement $1" -H 'content-type: application/json' \
    -H 'x-auth-token: admin' -H 'x-roles: admin,service'
}
"""

#: All but the version document, which shows no state.
ASKED: Final[Mapping[Writer, int]] = {
    writer: weight for writer, weight in WRITERS.items() if writer is not show_root
}

#: After so long the shortest history so far will do.
_SHRINK_S_MAX: Final = 45.0

_PARTS: Final = ("", "/inventories", "/usages", "/allocations", "/aggregates", "/traits")

#: Questions that are asked again after a write.
_AGAIN: Final = 2

#: Of what the model answers, the share that a new service answers too.
_FRESH_SHARE: Final = 0.1

#: Of an answer's headers, those that say what was answered.
_HEADERS: Final = ("allow", "cache-control", "content-type", "openstack-api-version", "vary")

_ID: Final = re.compile(rb"req-[0-9a-f-]{36}")
_LIMIT: Final = re.compile("&limit=[0-9]+|limit=[0-9]+&")

Send = Callable[[Step], Response]


class Disagreement(Exception):
    """An answer is not the one that is due."""


class Judge:
    """A service and the plain model, both empty at first.

    Args:
        workers: each sends a request to a worker of its own.
        fresh: sends one to a worker that has just started.
        check: the faults of a worker, by its number, after a write.
        keeps_times: whether a provider is only dated anew when it changes: MySQL writes the time of
            a row that only guards another (docs/differences.md).
    """

    def __init__(
        self,
        workers: Sequence[Send],
        fresh: Send,
        check: Callable[[int], Sequence[str]] = lambda worker: (),
        model: PlainModel | None = None,
        *,
        keeps_times: bool = True,
    ) -> None:
        self.plain = PlainServer(model)
        #: Answers that were judged.
        self.count = 0
        self._workers = workers
        self._fresh = fresh
        self._check = check
        self._keeps_times = keeps_times
        self._questions: list[Step] = []

    def play(self, step: Step) -> Answer:
        """Send a request to a worker, which depends on it alone, and judge the answer and what is
        seen of it.

        Raises:
            Disagreement: what differs.
        """
        rng = Random(str(step))
        place = rng.randrange(len(self._workers))
        response = self._judge(rng, place, step)
        if step.method == "GET":
            self._questions.append(step)
        elif response.status < 300:
            other = rng.randrange(len(self._workers))
            again = rng.sample(self._questions, min(_AGAIN, len(self._questions)))
            for read in (*self._reads_after(rng, step), *again):
                self._judge(rng, other, read)
            if faults := self._check(other):
                raise Disagreement("\n".join(faults))
        headers = {name.lower(): value for name, value in response.headers.pairs}
        return Answer(response.status, headers, response.body)

    def _judge(self, rng: Random, worker: int, step: Step) -> Response:
        since = int(time.time()) if self._keeps_times else 0
        response = self._workers[worker](step)
        self.count += 1
        given = (response.headers.get("location") or "").rpartition("/")[2]
        try:
            due = self.plain.answer(step, given)
        except Unjudged:
            self._compare_with_fresh(step, response, since)
            return response
        shown = comparable(response.json) if response.status < 400 else response.code
        if (response.status, shown) != (due.status, comparable(due.body)):
            raise Disagreement(f"{step}\nanswered {response.status} {shown}, the model says {due}")
        if step.method == "GET" and rng.random() < _FRESH_SHARE:
            self._compare_with_fresh(step, response, since)
        return response

    def _reads_after(self, rng: Random, step: Step) -> Iterator[Step]:
        """The list of all providers, and everything about one of the providers and one of the
        consumers that the write has named, with the usages of projects."""
        yield request("GET", "/resource_providers")
        model, named = self.plain.model, sorted(known_uuids([step]))
        providers = [uuid for uuid in named if uuid in model.providers or uuid in step.path]
        for uuid in rng.sample(providers, min(1, len(providers))):
            for part in _PARTS:
                yield request("GET", f"/resource_providers/{uuid}{part}")
        consumers = [uuid for uuid in named if uuid in model.consumers or uuid in step.path]
        for uuid in rng.sample(consumers, min(1, len(consumers))):
            yield request("GET", f"/allocations/{uuid}")
            for project in sorted({consumer.project for consumer in model.consumers.values()}):
                yield request("GET", f"/usages?project_id={project}")

    def _compare_with_fresh(self, step: Step, response: Response, since: int) -> None:
        fresh = self._fresh(step)
        lived, due = Told.of(response, since), Told.of(fresh, since)
        is_same = lived == due
        if "limit=" in step.path and response.status == fresh.status == 200:
            every = Told.of(self._fresh(replace(step, path=_LIMIT.sub("", step.path))), since)
            is_same = lived.is_part_of(every) and lived.requests.total() == due.requests.total()
        if not is_same:
            raise Disagreement(f"{step}\nanswered {response}, a new service says {fresh}")


class Told(NamedTuple):
    """An answer in a form that is equal for two correct answers to one question.

    Attributes:
        headers: those that describe the content; the time of a change, if it was before the answer.
        body: every byte, except the id of the request; empty of candidates, which have no order.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    requests: Counter[str]
    summaries: Mapping[str, str]

    @classmethod
    def of(cls, answer: Response, since: int) -> Told:
        """The form of an answer that came after some moment, in seconds since 1970.

        A change counts if it was before that.
        """
        headers = {name: answer.headers[name] for name in _HEADERS if name in answer.headers}
        modified = answer.headers.get("last-modified")
        if modified and parsedate_to_datetime(modified).timestamp() < since:
            headers["last-modified"] = modified
        if b'"allocation_requests"' not in answer.body:
            return cls(answer.status, headers, _ID.sub(b"", answer.body), Counter(), {})
        requests, summaries = answer.json["allocation_requests"], answer.json["provider_summaries"]
        return cls(
            answer.status,
            headers,
            b"",
            Counter(json.dumps(each) for each in requests),
            {uuid: json.dumps(each) for uuid, each in summaries.items()},
        )

    def is_part_of(self, every: Told) -> bool:
        """Whether these are some of all candidates."""
        return self.requests <= every.requests and self.summaries.items() <= every.summaries.items()


def comparable(value: Any) -> Any:
    """The value with its lists sorted: the contract leaves their order open."""
    if isinstance(value, dict):
        return {key: comparable(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((comparable(item) for item in value), key=repr)
    return value


def play_history(
    judge: Callable[[], Judge], seed: str, count: int, *, shrinks: bool = True
) -> None:
    """Play a history, and fail with the shortest part of it that shows a disagreement.

    Args:
        judge: gives a service and its model, empty if the history is to be shrunk.
    """
    history = History(seed, count, writers=ASKED, spoilers={well_formed: 1})
    served, steps = judge(), list[Step]()
    for step in history.steps():
        steps.append(step)
        try:
            answer = served.play(step)
        except Disagreement as found:
            end = time.monotonic() + (_SHRINK_S_MAX if shrinks else 0)
            pytest.fail(_told(judge, steps, str(found), end), pytrace=False)
        history.picture.learn(step, answer)


def _told(judge: Callable[[], Judge], steps: Sequence[Step], found: str, end: float) -> str:
    """A failure as a script of requests that can be sent to any server."""
    last = found

    def shows(some: Sequence[Step]) -> bool:
        nonlocal last
        served = judge()
        for place, step in enumerate(some, start=1):
            try:
                served.play(step)
            except Disagreement as again:
                if place == len(some):
                    last = str(again)
                return place == len(some)
        return False

    shown = shortest(steps, shows, give_up=lambda: time.monotonic() > end)
    return "\n".join([PRELUDE, *map(script_line, shown), last, repeat_with()])


def script_line(step: Step) -> str:
    """A request as a line of the script."""
    words = [f"api {step.version} {step.method} {shlex.quote(step.path)}"]
    if step.body is not None:
        words.append(shlex.quote(step.body.decode()))
    return " ".join(words)
