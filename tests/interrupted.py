# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: a run that is interrupted leaves no process and no directory behind.

SIGTERM ends a run as Ctrl-C does. What is left when a process of the run has ended, whatever ended
it, is cleared away by its guard.
"""

from __future__ import annotations

import os
import signal
import uuid
from typing import NoReturn

import pytest

from tests.servers.guard import RUN, the_guard


def pytest_configure(config: pytest.Config) -> None:
    """Mark what this process starts, and end at SIGTERM."""
    os.environ[RUN] = uuid.uuid4().hex
    the_guard().watch("run", os.environ[RUN])
    if not hasattr(config, "workerinput"):
        signal.signal(signal.SIGTERM, _interrupt)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Have the directory of the run removed, unless it comes to its end."""
    if not hasattr(session.config, "workerinput"):
        the_guard().watch("directory", _directory_of(session))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Keep it for whoever looks for the reason of a failure."""
    if not hasattr(session.config, "workerinput") and exitstatus != pytest.ExitCode.INTERRUPTED:
        the_guard().forget("directory", _directory_of(session))


def _directory_of(session: pytest.Session) -> str:
    factory: pytest.TempPathFactory = session.config._tmp_path_factory  # type: ignore[attr-defined]
    return str(factory.getbasetemp())


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt("SIGTERM")
