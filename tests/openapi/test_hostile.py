# SPDX-License-Identifier: Apache-2.0
"""Hostile requests to `/berth/v1` on every engine: no 5xx, no traceback, no harm.

`BERTH_HOSTILE_REQUESTS=200000 make test ARGS="-n 2 -rP tests/openapi/test_hostile.py"` sends so
many to each engine, and prints the answers that took longest. `BERTH_SEED` repeats a run.
"""

from __future__ import annotations

import io
import json
import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from heapq import nlargest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

import pytest

from berth import config, deploy
from berth.index import Index
from berth.upkeep.integrity import iter_faults
from tests.client import Client, Exchange, Headers, Response, wsgi_environ
from tests.effort import SEED, repeat_with, scaled
from tests.fresh import Fresh, opened_at
from tests.index.checking import checked
from tests.openapi.conformance import JSON, check_described
from tests.openapi.hostile import Hostile, hostile, settle

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

REQUESTS: Final = int(os.environ.get("BERTH_HOSTILE_REQUESTS", scaled(1500)))
#: Many are sent in parts, each to a fleet of its own, so that none runs into the limit of a test.
PART: Final = 10_000
#: On a server an answer takes longer than on a file.
SHARE_OF_SERVERS: Final = 1 if "BERTH_HOSTILE_REQUESTS" in os.environ else 3
CONF: Final = """
[api]
auth_strategy = noauth2
[berth]
lease_sweep_seconds = 0
candidates_time_budget = 1
audit_log = {folder}/audit.jsonl
[placement_database]
connection = {url}
"""
#: Reasons of a 503.
REASONS: Final = {"berth.search.gave_up", "placement.overloaded"}
CONTROLS: Final = frozenset({*range(32), 127})
#: More are counted only.
SHOWN: Final = 10
SLOWEST: Final = 8


class Log(logging.Handler):
    """Keeps what is logged of failures."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.failures: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record that has a traceback, or is an error; format all of them.

        Not of sweeps: this application has none, but those of an earlier test in this process may
        look for its database, which is gone.
        """
        if record.threadName == "lease-sweeps":
            return
        text = self.format(record)
        if record.exc_info or record.levelno >= logging.ERROR:
            self.failures.append(text)


class Sender:
    """Calls an application; it reads no stream to its end."""

    def __init__(self, application: WSGIApplication) -> None:
        self._application = application

    def send(self, request: Hostile) -> Response:
        """The answer to a request."""
        headers = [(name, value) for name, value in request.headers.items()]
        if request.body is not None and "Content-Length" not in request.headers:
            headers.append(("Content-Length", str(len(request.body))))
        environ = wsgi_environ(
            request.method, request.target, headers, request.body, script_name=""
        )
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], _: object = None, /
        ) -> Callable[[bytes], object]:
            started.append((status, headers))
            return io.BytesIO().write

        pieces = self._application(environ, start_response)
        ((status, answered),) = started
        is_stream = dict(answered).get("content-type") == "text/event-stream"
        body = b"" if is_stream else b"".join(pieces)
        if hasattr(pieces, "close"):
            pieces.close()
        # As a server sends them.
        assert not any(set(text.encode("latin-1")) & CONTROLS for pair in answered for text in pair)
        return Response(int(status[:3]), Headers(answered), body)


def fault_of(request: Hostile, answer: Response) -> str:
    """What is wrong with an answer; empty if nothing is."""
    # Authentication has a form of its own, that of its middleware.
    is_error = answer.status >= 400 and answer.status != 401
    if is_error and answer.headers.get("content-type") == JSON:
        error = json.loads(answer.body)["errors"][0]
        if error["status"] != answer.status or not error["detail"] or not error["request_id"]:
            return "an error without its facts"
        if answer.status == 503 and error["code"] not in REASONS:
            return "a 503 without a reason"
    if answer.status >= 500 and answer.status != 503:
        return "a failure of the server"
    path = unquote(request.target.partition("?")[0], errors="replace")
    try:
        check_described(Exchange(request.method, path, "1.39", answer))
    except AssertionError as error:
        return f"not described: {error}"
    return ""


@contextmanager
def logging_to(log: Log) -> Iterator[None]:
    """Pass what berth logs, at the level of a service, to a handler only."""
    logger = logging.getLogger("berth")
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)
        logger.propagate = True


@pytest.mark.parametrize("first", range(0, REQUESTS, PART))
def test_hostile_requests_do_no_harm(engine: str, fresh: Fresh, tmp_path: Path, first: int) -> None:
    """Each is answered with 2xx, 304, 4xx, or 503 with a reason, as the document describes it;
    nothing is logged as a failure; and data and index are as they must be."""
    url = fresh(tmp_path)
    placement_conf = tmp_path / "placement.conf"
    placement_conf.write_text(CONF.format(url=url, folder=tmp_path))
    application = deploy.load_application(config.load([str(placement_conf)]))
    revision = settle(Client.of(application))
    log, sender = Log(), Sender(application)
    statuses, done = Counter[int](), Counter[str]()
    faults: list[str] = []
    slowest: list[tuple[float, Hostile]] = []
    with logging_to(log):
        count = min(PART, REQUESTS - first) // (1 if engine == "sqlite" else SHARE_OF_SERVERS)
        for number in range(first, first + count):
            request = hostile(SEED, number).knowing(revision)
            begin = time.monotonic()
            answer = sender.send(request)
            slowest = nlargest(
                SLOWEST, [*slowest, (time.monotonic() - begin, request)], itemgetter(0)
            )
            statuses[answer.status] += 1
            done[f"{request.operation.method} {request.operation.path}"] += answer.status < 300
            fault = fault_of(request, answer)
            if fault or log.failures:
                faults.append(f"{fault}: {request}\n -> {answer}\n{''.join(log.failures)}")
                log.failures.clear()
    if "BERTH_HOSTILE_REQUESTS" in os.environ:
        print(f"{engine}: {sorted(statuses.items())}\nDone: {dict(done)}")
        print(*(f"{seconds:.2f} s {str(each)[:300]}" for seconds, each in slowest), sep="\n")
    assert not faults, f"{len(faults)}; {repeat_with()}\n" + "\n\n".join(faults[:SHOWN])
    assert statuses[200] > statuses.total() / 10, statuses
    database = opened_at(url)
    assert [*iter_faults(database)] == []
    assert checked(Index(database)) == []
    database.dispose()
