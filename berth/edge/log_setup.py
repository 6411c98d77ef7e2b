# SPDX-License-Identifier: Apache-2.0
"""Sets up the logging of a process from its configuration, and gives oslo.log's handlers our
formatters: for lines, and for JSON with more fields."""

from __future__ import annotations

import copy
import io
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Final

from oslo_config import cfg
from oslo_context.context import get_current
from oslo_log import log
from oslo_log.formatters import ContextFormatter, JSONFormatter

import berth
from berth.config import ConfigurationError
from berth.edge.log_lines import LineFormatter, context_of, safe
from berth.edge.request_log import fields_of
from berth.edge.secrets import masked

#: A log shows who requested what, so new log files are private to their owner.
_MODE: Final = 0o600
_UMASK: Final = 0o077


def set_up_logging(conf: cfg.ConfigOpts) -> None:
    """Configure logging for the whole process from `conf`; to stderr if it names no target.

    Raises:
        ConfigurationError: a log file cannot be written, or log_config_append cannot be used.
    """
    if not (conf.log_file or conf.log_dir or conf.use_journal):
        # COMPAT spec/operations.md 3.2: newer releases of oslo.log would take stdout.
        conf.set_default("use_stderr", True)
    try:
        with _closed_to_others():
            log.setup(conf, "berth", berth.__version__)
        handlers = logging.getLogger().handlers
        adopt(handlers)
        _keep_closed(handlers)
    except log.LogConfigError as error:
        raise ConfigurationError(f"{error}") from error
    except (OSError, TypeError) as error:  # TypeError: an unknown syslog facility
        raise ConfigurationError(f"cannot write the log as configured: {error}") from error


@contextmanager
def _closed_to_others() -> Iterator[None]:
    """Make files created meanwhile private to their owner, whatever the umask."""
    before = os.umask(_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def _keep_closed(handlers: list[logging.Handler]) -> None:
    """Make the files private that handlers create later, such as after a rotation."""
    for handler in handlers:
        if isinstance(handler, logging.FileHandler):
            setattr(handler, "_open", partial(_open_closed, handler))  # noqa: B010 - mypy's rule


def _open_closed(handler: logging.FileHandler) -> io.TextIOWrapper:
    """As `FileHandler._open`, but a new file is private to its owner."""
    stream = open(  # noqa: SIM115 - the handler closes it
        handler.baseFilename,
        handler.mode,
        encoding=handler.encoding,
        errors=handler.errors,
        opener=_make_closed,
    )
    assert isinstance(stream, io.TextIOWrapper)
    return stream


def _make_closed(path: str, flags: int) -> int:
    try:
        made = os.open(path, flags | os.O_EXCL, _MODE)
    except FileExistsError:
        return os.open(path, flags, _MODE)
    os.fchmod(made, _MODE)
    return made


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
    """Give our formatters to the handlers that oslo.log set up for lines or JSON."""
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
        else:
            handler.addFilter(SafeMessages())
