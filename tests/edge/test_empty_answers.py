# SPDX-License-Identifier: Apache-2.0
"""Answers without candidates are explained in the log (spec/beyond.md 3.7)."""

from __future__ import annotations

import logging
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from berth.api.environ import CONTEXT
from berth.api.paths import match_of
from berth.api.request import Call
from berth.candidates.question import Question, QuestionGroup
from berth.edge.auth.identity import Context
from berth.edge.empty_answers import LOG
from tests.api import configured
from tests.client import Client, wsgi_environ
from tests.world_over_http import built_over_http
from tests.worlds import world

#: Longer than any explanation takes.
WAIT_S = 10

FLEET = world("""
    cn1
      numa0  VCPU=4
      numa1  MEMORY_MB=64
    cn2      VCPU=8(used:6)
""")
GLOBAL_ID = "req-9f3c1d5e-0a1b-4c2d-8e3f-1234567890ab"


class Kept(logging.Handler):
    """Keeps records, and waits for them."""

    def __init__(self) -> None:
        super().__init__()
        self.records: queue.Queue[logging.LogRecord] = queue.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.put(record)

    def next(self) -> logging.LogRecord:
        """The next record."""
        return self.records.get(timeout=WAIT_S)


@pytest.fixture
def log() -> Iterator[Kept]:
    """The lines of the logger."""
    handler, level = Kept(), LOG.level
    LOG.addHandler(handler)
    LOG.setLevel(logging.INFO)
    yield handler
    LOG.setLevel(level)
    LOG.removeHandler(handler)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A service that has only this fleet."""
    client = configured.serve(tmp_path_factory.mktemp("fleet"))
    with built_over_http(FLEET, client):
        yield client


def test_a_line_says_why_and_which_request(fleet: Client, log: Kept) -> None:
    """With the ids of the request in its context, whatever thread writes it."""
    sent = {"X-Openstack-Request-Id": GLOBAL_ID}
    answered = fleet.get("/allocation_candidates?resources=VCPU:5", headers=sent)
    assert answered.json["allocation_requests"] == []
    record = log.next()
    assert record.levelno == logging.INFO
    assert record.getMessage() == (
        "used_up: No host fits now; 1 would with nothing used. With VCPU 4 instead of 5, 1 host"
        " fits. Query: resources=VCPU:5"
    )
    context: Any = record.__dict__["context"]
    assert context.global_request_id == GLOBAL_ID
    assert context.request_id == answered.headers["x-openstack-request-id"]


def test_what_only_old_microversions_leave_out_is_named(fleet: Client, log: Kept) -> None:
    """Below 1.29 no two providers of a tree are in one candidate."""
    old = {"OpenStack-API-Version": "placement 1.28"}
    fleet.get("/allocation_candidates?resources=VCPU:3,MEMORY_MB:1", headers=old)
    assert log.next().getMessage() == (
        "fits: No host fits at microversion 1.28; from 1.29 on, which allows several providers of"
        " one tree: 1 host fits. Query: resources=VCPU:3,MEMORY_MB:1"
    )


def test_it_can_be_switched_off(tmp_path: Path, log: Kept) -> None:
    """By an option."""
    client = configured.serve(tmp_path, "[berth]\nexplain_empty_answers = false\n")
    with built_over_http(FLEET, client):
        client.get("/allocation_candidates?resources=VCPU:99")
        assert log.records.empty()


def noted() -> tuple[Question, Call]:
    """A request that nothing fits."""
    question = Question((("", QuestionGroup(resources=(("VCPU", 99),))),), is_query=True)
    environ = wsgi_environ(
        "GET", "/allocation_candidates?resources=VCPU:99", [], None, script_name=""
    )
    environ[CONTEXT] = Context.begin("req-1", None)
    unused: Any = None
    return question, Call(environ, match_of(environ), unused)
