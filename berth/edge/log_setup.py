# SPDX-License-Identifier: Apache-2.0
"""Sets up the logging of a process from its configuration."""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

from oslo_config import cfg
from oslo_log import log

import berth
from berth.config import ConfigurationError
from berth.edge import log_format

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
        log_format.adopt(handlers)
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
