# SPDX-License-Identifier: Apache-2.0
"""Lines of the log as oslo.log writes them, in a fifth of the time.

For every line, oslo.log computes everything that a format string could name, which cost more than
the rest of a small request. Nearly all lines (level INFO, of a request, in a format of the usual
fields) are formatted here instead. oslo.log formats the others, and tests/edge/test_log_format.py
checks that its lines and ours are the same.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import time
from operator import attrgetter
from typing import Any, Final

from oslo_context.context import RequestContext, get_current
from oslo_log.formatters import ContextFormatter

from berth.edge.secrets import masked
from berth.model.printable import printable

_FIELD: Final = re.compile(r"%\((\w+)\)")

#: The attribute of a context that each field of `logging_user_identity_format` shows.
_IDENTITY: Final = {
    "user": "user_id",
    "project": "project_id",
    "domain": "domain_id",
    "system_scope": "system_scope",
    "user_domain": "user_domain_id",
    "project_domain": "project_domain_id",
    "user_name": "user_name",
    "project_name": "project_name",
}

_identity_values: Final = attrgetter(*_IDENTITY.values())

#: The fields of `logging_context_format_string` that are supported here.
_FIELDS: Final = frozenset(
    {
        *("name", "levelname", "process", "msecs", "asctime", "message", "instance"),
        *("request_id", "global_request_id", "user_identity"),
    }
)

#: A field of a format string, or a percent sign.
_SPECIFIER: Final = re.compile(r"%(?:%|\((\w+)\)[-+ #0]*[0-9]*(?:\.[0-9]+)?[a-zA-Z])")

#: The attributes of a record that make oslo.log write more than the plain line.
_EXTRAS: Final = ("instance", "context", "instance_uuid")


class LineFormatter(ContextFormatter):
    """oslo.log's formatter, with a fast path for plain lines."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._line: str = self.conf.logging_context_format_string
        self._identity: str = self.conf.logging_user_identity_format
        self._is_customary = (
            bool(self.datefmt)
            and set(_FIELD.findall(self._line)) <= _FIELDS
            and set(_FIELD.findall(self._identity)) <= _IDENTITY.keys()
        )
        #: A second and a logger, and the format with both filled in.
        self._filled: tuple[tuple[int, str] | None, str] = (None, "")
        #: The last caller, and its text in the log.
        self._last_identity: tuple[tuple[object, ...] | None, str] = (None, "")

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as a line, which no client's text can break or colour."""
        context = get_current()
        try:
            message = record.getMessage()
        except TypeError:
            # Message and arguments do not match: oslo.log reports that in the line.
            return _safe_lines(super().format(record), record)
        if record.levelno == logging.INFO and context is not None and _is_plain(record):
            line = self.line_of(record.name, context, message, record.created)
            if line is not None:
                return line
        if not message.isprintable():
            record = copy.copy(record)
            record.msg, record.args = safe(message, context_of(record)), ()
        return _safe_lines(super().format(record), record)

    def line_of(
        self, name: str, context: RequestContext, message: str, created: float
    ) -> str | None:
        """The line of a request's plain record at level INFO; None if that is up to oslo.log.

        Args:
            name: of the logger.
            created: seconds since 1970.
        """
        if not self._is_customary or not context.request_id or context.resource_uuid:
            return None
        key = int(created), name
        filled_for, filled = self._filled
        if filled_for != key:
            filled = self._fill_in(key)
            self._filled = key, filled
        return filled % {
            "msecs": created % 1 * 1000,
            "request_id": context.request_id,
            "global_request_id": context.global_request_id,
            "user_identity": self._identity_of(context),
            "message": safe(message, context),
        }

    def _fill_in(self, key: tuple[int, str]) -> str:
        """The format with everything that all lines of a second and a logger share."""
        second, name = key
        shared = {
            "asctime": self.formatTime(logging.makeLogRecord({"created": second}), self.datefmt),
            "name": name,
            "levelname": logging.getLevelName(logging.INFO),
            "process": os.getpid(),
            "instance": "",
        }

        def fill(field: re.Match[str]) -> str:
            if field[1] not in shared:
                return field[0]
            return (field[0] % shared).replace("%", "%%")

        return _SPECIFIER.sub(fill, self._line)

    def _identity_of(self, context: Any) -> str:
        """The text of a caller: mostly that of the last one."""
        values = _identity_values(context)
        last_values, text = self._last_identity
        if values != last_values:
            shown = (value or "-" for value in values)
            text = safe(self._identity % dict(zip(_IDENTITY, shown, strict=True)), context)
            self._last_identity = values, text
        return text


def write_line(logger: logging.Logger, context: RequestContext, message: str) -> bool:
    """Write the line of a plain record made now, at level INFO, if the logger's records go to a
    stream alone; False if this takes the record.

    PERF bench.fixed_cost: a record and its way through `logging` cost as much as the line.
    """
    root = logger.root
    if logger.handlers or logger.filters or logger.parent is not root or not logger.propagate:
        return False
    if len(root.handlers) != 1 or type(handler := root.handlers[0]) is not logging.StreamHandler:
        return False
    formatter = handler.formatter
    if type(formatter) is not LineFormatter or handler.filters or handler.level > logging.INFO:
        return False
    try:
        line = formatter.line_of(logger.name, context, message, time.time())
        if line is None:
            return False
        assert handler.lock is not None, "every handler has a lock"
        with handler.lock:
            handler.stream.write(line + handler.terminator)
            handler.stream.flush()
    except Exception:  # noqa: BLE001 - `Handler.emit` catches the same, and reports it
        return False
    return True


def safe(text: str, context: object) -> str:
    """A text as it can stand in the log: without the caller's credentials, and in one line."""
    # PERF bench.fixed_cost: each request's line passes here.
    if getattr(context, "credentials", ()):
        text = masked(text, context)
    return text if text.isprintable() else printable(text)


def context_of(record: logging.LogRecord) -> object:
    """The context of the request that a record belongs to; None without one."""
    return record.__dict__.get("context") or get_current()


def _safe_lines(text: str, record: logging.LogRecord) -> str:
    """As `safe`, for the lines of a traceback."""
    return "\n".join(map(printable, masked(text, context_of(record)).split("\n")))


def _is_plain(record: logging.LogRecord) -> bool:
    """Whether a record needs no more than the plain line."""
    if record.exc_info or record.exc_text or record.stack_info:
        return False
    return not any(map(record.__dict__.get, _EXTRAS))
