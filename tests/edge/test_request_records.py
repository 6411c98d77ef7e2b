# SPDX-License-Identifier: Apache-2.0
"""The records of the request log, against those that `logging` makes."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from berth.edge import request_log
from berth.edge.request_log import LOG, OutcomeLog

OUTCOME = ("127.0.0.1", '"GET /"', "200", "136", "1.39", "")

#: What no two records share.
OF_THE_MOMENT = {"created", "msecs", "relativeCreated"}


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """The attributes of a record, and the types of those that no two share."""
    return {
        name: type(value) if name in OF_THE_MOMENT else value
        for name, value in vars(record).items()
    }


def made_by_logging(level: int) -> logging.LogRecord:
    """The record that `logging` makes."""
    record = LOG.makeRecord(
        LOG.name, level, request_log.__file__, 0, request_log._END, OUTCOME, None, "layer"
    )
    record.__dict__["request_seconds"] = 0.25
    return record


def in_a_thread(call: Callable[[], None]) -> None:
    """Run something in a thread with a name."""
    thread = threading.Thread(target=call, name="another")
    thread.start()
    thread.join()


@pytest.mark.parametrize("level", [logging.DEBUG, logging.INFO])
def test_a_record_is_that_of_logging(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every attribute, the second time too, and in another thread."""
    log = OutcomeLog()
    compared: list[bool] = []

    def compare() -> None:
        for _ in range(2):
            record, wanted = log.record(level, OUTCOME, 0.25), made_by_logging(level)
            compared.append(fields(record) == fields(wanted))
            later = wanted.created - record.created
            assert 0 <= later < 10
            assert wanted.relativeCreated - record.relativeCreated == pytest.approx(
                1000 * later, abs=1
            )
            assert record.msecs == int(record.created % 1 * 1000)

    compare()
    in_a_thread(compare)
    assert compared == [True] * 4
    # After a fork it has another process.
    monkeypatch.setattr(os, "getpid", lambda: 77)
    assert log.record(logging.INFO, OUTCOME, 0.25).process == 77
