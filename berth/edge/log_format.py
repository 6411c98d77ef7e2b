# SPDX-License-Identifier: Apache-2.0
"""Gives oslo.log's handlers our formatters: for lines, and for JSON with more fields."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from typing import TextIO

from oslo_context.context import get_current
from oslo_log.formatters import ContextFormatter, JSONFormatter

from berth.edge.log_lines import LineFormatter, LineHandler, context_of, safe
from berth.edge.request_log import fields_of
from berth.edge.secrets import masked


class ObjectFormatter(JSONFormatter):
    """oslo.log's formatter for `use_json`, with a field for each value of a request's line.

    The arguments of a message are shown as in the message. oslo.log would serialize the contents
    of objects, whatever they contain, and fail on cyclic ones.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as a JSON object."""
        message = record.getMessage()
        shown = copy.copy(record)
        shown.__dict__["getMessage"] = lambda: message
        if isinstance(record.args, Mapping):
            shown.args = {name: _plain(value) for name, value in record.args.items()}
        else:
            shown.args = tuple(map(_plain, record.args or ()))
        fields = fields_of(record)
        if (trace_id := getattr(get_current(), "trace_id", None)) is not None:
            fields["trace_id"] = trace_id
        if fields:
            shown.__dict__["extra"] = fields
        return masked(super().format(shown), context_of(record))


class SafeMessages(logging.Filter):
    """For handlers with formatters of others: shows each message as our formatters do."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the message of a record."""
        record.msg, record.args = safe(record.getMessage(), context_of(record)), ()
        return True


def _plain(value: object) -> object:
    return value if value is None or isinstance(value, str | int | float) else str(value)


def adopt(handlers: list[logging.Handler]) -> None:
    """Give our formatters to the handlers that oslo.log set up for lines or JSON.

    Those of lines on a stream are replaced by our own.
    """
    for place, handler in enumerate(handlers):
        slow = handler.formatter
        if type(slow) is JSONFormatter:
            handler.setFormatter(ObjectFormatter(datefmt=slow.datefmt))
        elif type(slow) is ContextFormatter:
            if type(handler) is logging.StreamHandler:
                handlers[place] = handler = _taking_lines(handler)
            handler.setFormatter(
                LineFormatter(
                    datefmt=slow.datefmt,
                    config=slow.conf,
                    project=slow.project,
                    version=slow.version,
                )
            )
        else:
            handler.addFilter(SafeMessages())


def _taking_lines(handler: logging.StreamHandler[TextIO]) -> LineHandler:
    own = LineHandler(handler.stream)
    own.setLevel(handler.level)
    own.name = handler.name
    own.filters = handler.filters
    return own
