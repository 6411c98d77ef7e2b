# SPDX-License-Identifier: Apache-2.0
"""Lines that are written without a record, against those that logging writes."""

from __future__ import annotations

import io
import logging
import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_context.context import RequestContext

from berth.edge import log_lines
from berth.edge.log_lines import LineFormatter, write_line
from tests.edge.test_log_format import CONTEXTS, DATES, IDENTITIES, configuration
from tests.effort import scaled

NAME = "placement.requestlog"
LINES = st.sampled_from(
    [
        None,
        "%(asctime)s.%(msecs)03d %(levelname)-8s %(message)s",
        "%(request_id)s %(user_identity)s %(instance)s%(message)s 100%% %%(name)s %(name)s",
        "%(asctime)s %(process)6d [%(global_request_id)s] %(message)s",
        "%(message)s %(thread)d",
        "%(isotime)s %(message)s",
    ]
)
#: Digits of the moment, which differ between two lines.
MOMENT = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{3})?")


def logger_of(formatter: logging.Formatter) -> tuple[logging.Logger, io.StringIO]:
    """A logger below a root of its own, whose only handler writes into memory."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(formatter)
    root = logging.RootLogger(logging.INFO)
    root.addHandler(handler)
    logger = logging.Logger(NAME)
    logger.parent = root
    setattr(logger, "root", root)  # noqa: B010 - mypy takes it for the class's alone
    return logger, text


def without_times(text: io.StringIO) -> str:
    """What was written, without the time of day."""
    return MOMENT.sub("<time>", text.getvalue())


@settings(max_examples=scaled(100))
@given(
    line=LINES,
    identity=IDENTITIES,
    contexts=st.lists(CONTEXTS, min_size=1, max_size=3),
    message=st.sampled_from(["plain", "100% of %s", "GET /é"]),
)
def test_a_line_without_a_record_is_that_of_a_record(
    line: str | None, identity: str | None, contexts: list[RequestContext], message: str
) -> None:
    """Whatever the formats and the callers, where it is written at all."""
    formatter = LineFormatter(datefmt=DATES, config=configuration(line, identity))
    direct, lines = logger_of(formatter)
    by_record, expected = logger_of(formatter)
    for context in contexts:
        context.update_store()
        if write_line(direct, context, message):
            record = logging.LogRecord(NAME, logging.INFO, "", 0, "%s", (message,), None)
            by_record.handle(record)
    assert without_times(lines) == without_times(expected)


def test_each_line_has_its_own_time_and_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not those of the line before."""
    line = "%(asctime)s.%(msecs)03d %(user_identity)s %(message)s"
    logger, text = logger_of(LineFormatter(datefmt="%S", config=configuration(line, "%(user)s")))
    for now, user in ((1.25, "alice"), (1.5, "bob"), (3.0, "bob"), (3.0, "alice")):
        monkeypatch.setattr(log_lines, "time", SimpleNamespace(time=lambda now=now: now))
        context = RequestContext(request_id="req-1", user_id=user, overwrite=False)
        assert write_line(logger, context, "message")
    assert text.getvalue().splitlines() == [
        "01.250 alice message",
        "01.500 bob message",
        "03.000 bob message",
        "03.000 alice message",
    ]
