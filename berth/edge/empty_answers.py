# SPDX-License-Identifier: Apache-2.0
"""Logs why an answer of `GET /allocation_candidates` has no candidates.

The scheduler only says that no valid host was found; its request id leads to the reason here. All
of it happens in a thread that rests ten times as long as it works, so that a scheduler in trouble
gets its answers as fast as before. What it cannot keep up with is not explained.

Source: spec/beyond.md 3.7.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NamedTuple

from oslo_context.context import RequestContext

from berth.api.placement.allocation_candidates import TREES_SINCE
from berth.api.request import Call
from berth.candidates import Budget
from berth.candidates.explain import Wanted, explain
from berth.candidates.question import Question
from berth.edge.request_log import printable_query
from berth.index import Snapshot
from berth.model.explanation import Explanation, Verdict

LOG: Final = logging.getLogger("berth.explain")

#: Seconds of work for one explanation, and seconds between two of them at least.
SECONDS_MAX: Final = 0.02
REST_S: Final = 0.1
#: How many times as long as it works the thread rests.
REST_FACTOR: Final = 10
#: Answers that wait to be explained; each holds the fleet as it was.
WAITING_MAX: Final = 16

_WANTED: Final = Wanted(nearest_max=0)


class _Answer(NamedTuple):
    """An answer without candidates."""

    snapshot: Snapshot
    question: Question
    query: str
    microversion: int
    context: RequestContext


class EmptyAnswers:
    """Explains answers in a thread of its own, which ends when there are none left.

    Args:
        pause: rests for some seconds.
    """

    def __init__(self, *, pause: Callable[[float], None] = time.sleep) -> None:
        self._pause = pause
        self._lock = threading.Lock()
        self._waiting: deque[_Answer] = deque()
        self._thread: threading.Thread | None = None

    def note(self, snapshot: Snapshot, question: Question, call: Call) -> None:
        """Explain later why a request got no candidates; returns at once and never fails."""
        if not LOG.isEnabledFor(logging.INFO):
            return
        query, minor = call.query_string, call.microversion
        answer = _Answer(snapshot, question, query, minor, call.caller)
        with self._lock:
            if len(self._waiting) >= WAITING_MAX:
                return
            self._waiting.append(answer)
            # A thread does not survive a fork.
            if self._thread is None or not self._thread.is_alive():
                # There may be too many threads: then a later answer starts this one.
                with suppress(RuntimeError):
                    thread = threading.Thread(target=self._run, name="explain", daemon=True)
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                answer = self._waiting.popleft()
            began = time.monotonic()
            try:
                LOG.info("%s", line_of(answer), extra={"context": answer.context})
            except Exception:
                LOG.exception("An answer without candidates could not be explained.")
            del answer
            self._pause(max(REST_S, REST_FACTOR * (time.monotonic() - began)))


def line_of(answer: _Answer) -> str:
    """The verdict, what it means, and the query."""
    budget = Budget(time.monotonic, seconds=SECONDS_MAX, processor=time.thread_time)
    explanation = explain(answer.snapshot, answer.question, wanted=_WANTED, budget=budget)
    said = _said(explanation, answer.microversion)
    return f"{explanation.verdict.value}: {said} Query: {printable_query(answer.query)}"


def _said(explanation: Explanation, microversion: int) -> str:
    if explanation.verdict is Verdict.GAVE_UP:
        return f"No host fits; the reason was not found within {1000 * SECONDS_MAX:.0f} ms."
    if explanation.verdict is Verdict.FITS:
        # Only older microversions leave such candidates out.
        return (
            f"No host fits at microversion 1.{microversion}; from 1.{TREES_SINCE} on, which allows"
            f" several providers of one tree: {explanation.summary}"
        )
    return explanation.summary
