# SPDX-License-Identifier: Apache-2.0
"""The fast formatter of log lines, compared with that of oslo.log."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_log.formatters import ContextFormatter

from berth import config
from berth.edge.log_lines import LineFormatter
from berth.model.printable import printable
from tests.effort import scaled

DATES = "%Y-%m-%d %H:%M:%S"

#: What a header of identity may hold: no line break.
TEXT = st.none() | st.text(st.characters(exclude_characters="\n"), max_size=8)
#: An id that the client sent; any other form is ignored.
GLOBAL_ID = st.sampled_from([None, "req-5e5e5e5e-5e5e-4e5e-ae5e-5e5e5e5e5e5e"])
CONTEXTS = st.builds(
    RequestContext,
    request_id=st.just("req-1"),
    global_request_id=GLOBAL_ID,
    user_id=TEXT,
    project_id=TEXT,
    domain_id=TEXT,
    system_scope=TEXT,
    user_domain_id=TEXT,
    project_domain_id=TEXT,
    user_name=TEXT,
    project_name=TEXT,
    resource_uuid=st.sampled_from([None, None, "9c9d"]),
    auth_token=TEXT,
    overwrite=st.just(False),
)
LINES = st.sampled_from(
    [
        None,
        "%(asctime)s.%(msecs)03d %(levelname)s %(message)s",
        "%(request_id)s %(user_identity)s %(instance)s%(message)s 100%%",
        "%(isotime)s %(message)s",
        "%(message)s %(error_summary)s",
        "%(message)s %(roles)s",
    ]
)
IDENTITIES = st.sampled_from(
    [None, "%(user)s %(project)s", "%(user_name)s", "%(user)s %(is_admin)s", "nobody"]
)
RECORDS = st.fixed_dictionaries(
    {
        "name": st.just("placement.requestlog"),
        "levelno": st.sampled_from([logging.DEBUG, logging.INFO, logging.INFO, logging.WARNING]),
        "msg": st.sampled_from(["plain", "of %s", "of %d", "50%% of %s"]),
        "args": st.sampled_from([(), ("one",), ("one", "two")]),
        "created": st.floats(1e9, 2e9),
    },
    optional={
        "instance": st.sampled_from(["", {"uuid": "5e5e", "name": "vm"}]),
        "instance_uuid": st.just("5e5e"),
    },
)


def configuration(line: str | None = None, identity: str | None = None) -> cfg.ConfigOpts:
    """The logging options, with custom formats."""
    conf = config.load()
    if line is not None:
        conf.set_override("logging_context_format_string", line)
    if identity is not None:
        conf.set_override("logging_user_identity_format", identity)
    return conf


def record_of(fields: Mapping[str, Any]) -> logging.LogRecord:
    """A record with these attributes."""
    record = logging.makeLogRecord(dict(fields))
    record.levelname = logging.getLevelName(record.levelno)
    record.msecs = record.created % 1 * 1000
    return record


def written(
    formatter: logging.Formatter, record: logging.LogRecord, context: RequestContext | None
) -> str:
    """The text of a formatter for a copy of a record, in a new thread with only this context.

    A message that does not match its arguments may be refused; the handler then reports it.
    """
    lines: list[str] = []

    def write() -> None:
        if context is not None:
            context.update_store()
        try:
            lines.append(formatter.format(copy.copy(record)))
        except TypeError as refusal:
            lines.append(f"refused: {refusal}")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    (line,) = lines
    return line


@settings(max_examples=scaled(100))
@given(
    line=LINES,
    identity=IDENTITIES,
    context=st.none() | CONTEXTS,
    fields=RECORDS,
    dates=st.sampled_from([DATES, None]),
)
def test_nobody_can_tell_who_wrote_a_line(
    line: str | None,
    identity: str | None,
    context: RequestContext | None,
    fields: dict[str, Any],
    dates: str | None,
) -> None:
    """For any formats, record and context: the same text as from oslo.log, with escapes for what
    cannot be seen."""
    conf = configuration(line, identity)
    short, slow = (kind(datefmt=dates, config=conf) for kind in (LineFormatter, ContextFormatter))
    record = record_of(fields)
    by_oslo = "\n".join(map(printable, written(slow, record, context).split("\n")))
    assert written(short, record, context) == by_oslo
