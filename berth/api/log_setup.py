# SPDX-License-Identifier: Apache-2.0
"""The log of a whole process, as its configuration says."""

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
from berth.api import log_format
from berth.config import ConfigurationError

#: A log tells who asked what: a file of it is for its owner alone, unless it is there already.
_MODE: Final = 0o600
_UMASK: Final = 0o077


def set_up_logging(conf: cfg.ConfigOpts) -> None:
    """Start logging as `conf` says, for the whole process; where it says nothing, to stderr.

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
    except (OSError, TypeError) as error:  # the latter from a facility of syslog that there is not
        raise ConfigurationError(f"cannot write the log as configured: {error}") from error


@contextmanager
def _closed_to_others() -> Iterator[None]:
    """Let files that are made meanwhile be their owner's alone, whatever the umask."""
    before = os.umask(_UMASK)
    try:
        yield
    finally:
        os.umask(before)


def _keep_closed(handlers: list[logging.Handler]) -> None:
    """Let handlers make their files so too that go on in a new one later, as after a rotation."""
    for handler in handlers:
        if isinstance(handler, logging.FileHandler):
            setattr(handler, "_open", partial(_open_closed, handler))  # noqa: B010 - mypy's rule


def _open_closed(handler: logging.FileHandler) -> io.TextIOWrapper:
    """As `FileHandler._open`, and a file that is made is its owner's alone."""
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
