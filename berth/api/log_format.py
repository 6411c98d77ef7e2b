# SPDX-License-Identifier: Apache-2.0
"""Lines of the log as oslo.log writes them, in a fifth of the time; and JSON with more in it.

oslo.log works out everything that any format string could name, for each line anew; that cost more
than all the rest of a small request. What nearly all lines are (level INFO, of a request, in a
format of the customary fields) is put together here instead; everything else is left to oslo.log,
and tests/api/unit/test_log_format.py holds that nobody can tell who wrote a line.
"""

from __future__ import annotations

import copy
import logging
import re
from collections.abc import Mapping
from typing import Any, Final

from oslo_context.context import RequestContext, get_current
from oslo_log.formatters import ContextFormatter, JSONFormatter

from berth.api.request_log import fields_of

_FIELD: Final = re.compile(r"%\((\w+)\)")

#: What each field of `logging_user_identity_format` shows of a context.
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

#: The fields of `logging_context_format_string` that are known here.
_FIELDS: Final = frozenset(
    {
        *("name", "levelname", "levelno", "process", "thread", "threadName", "module", "lineno"),
        *("funcName", "pathname", "filename", "created", "msecs", "asctime", "message", "instance"),
        *("request_id", "global_request_id", "user_identity"),
    }
)

#: What a record may bear for oslo.log to write something else than the plain line.
_EXTRAS: Final = ("context", "instance_uuid", "exc_info", "exc_text", "stack_info")


class LineFormatter(ContextFormatter):
    """oslo.log's formatter, with a short way for plain lines."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._line: str = self.conf.logging_context_format_string
        self._identity: str = self.conf.logging_user_identity_format
        self._identity_fields = [
            (field, _IDENTITY.get(field, "")) for field in _FIELD.findall(self._identity)
        ]
        self._is_customary = (
            bool(self.datefmt)
            and set(_FIELD.findall(self._line)) <= _FIELDS
            and all(attribute for _, attribute in self._identity_fields)
        )
        #: The last second, and how the log writes it.
        self._second = (-1, "")

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        context = get_current()
        if record.levelno == logging.INFO and self._is_customary and _is_plain(record, context):
            try:
                return self._short_way(record, context)
            except TypeError:
                pass  # the message and its arguments do not match: oslo.log says so in the line
        return super().format(record)

    def _short_way(self, record: logging.LogRecord, context: Any) -> str:
        shown = record.__dict__
        shown["message"] = record.getMessage()
        shown["asctime"] = self._time_of(record)
        shown["instance"] = ""
        shown["request_id"] = context.request_id
        shown["global_request_id"] = context.global_request_id
        shown["user_identity"] = self._identity % {
            field: getattr(context, attribute) or "-" for field, attribute in self._identity_fields
        }
        return self._line % shown

    def _time_of(self, record: logging.LogRecord) -> str:
        second, text = self._second
        if second != int(record.created):
            text = self.formatTime(record, self.datefmt)
            self._second = int(record.created), text
        return text


class ObjectFormatter(JSONFormatter):
    """oslo.log's formatter for `use_json`, which tells apart what a line of a request says.

    What a message was put together from is shown as in the message. oslo.log takes objects apart
    there, whatever they hold, and fails with those that lead back to themselves.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The object of a record."""
        message = record.getMessage()
        shown = copy.copy(record)
        shown.__dict__["getMessage"] = lambda: message
        if isinstance(record.args, Mapping):
            shown.args = {name: _plain(value) for name, value in record.args.items()}
        else:
            shown.args = tuple(map(_plain, record.args or ()))
        if fields := fields_of(record):
            shown.__dict__["extra"] = fields
        return super().format(shown)


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def adopt(handlers: list[logging.Handler]) -> None:
    """Let handlers that oslo.log has set up, and that write lines or JSON, use our formatters."""
    for handler in handlers:
        slow = handler.formatter
        if type(slow) is JSONFormatter:
            handler.setFormatter(ObjectFormatter(datefmt=slow.datefmt))
        elif type(slow) is ContextFormatter:
            handler.setFormatter(
                LineFormatter(
                    datefmt=slow.datefmt,
                    config=slow.conf,
                    project=slow.project,
                    version=slow.version,
                )
            )


def _is_plain(record: logging.LogRecord, context: RequestContext | None) -> bool:
    """Whether a record is of a request and says nothing that needs more than its line."""
    if context is None or not context.request_id or context.resource_uuid:
        return False
    borne = record.__dict__
    return not borne.get("instance") and not any(map(borne.get, _EXTRAS))
