# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: which database engines this run tests, said in one line at its end.

`BERTH_REQUIRE_ENGINES=sqlite,postgresql` names the engines that must be tested: where one of them
cannot be, the run fails before its first test. Nothing else makes a missing engine a failure, so
that the tests pass on a machine without servers, and say what they left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

#: The engines of this release, and the reason for each that cannot be tested here.
ENGINES: dict[str, str | None] = {
    "sqlite": None,
    "postgresql": "not yet supported by this release",
    "mariadb": "not yet supported by this release",
    "galera": "not yet supported by this release",
}

REQUIRE = "BERTH_REQUIRE_ENGINES"


def engines_tested() -> list[str]:
    """The engines that the tests of this run use."""
    return [name for name, reason in ENGINES.items() if reason is None]


def engines_skipped() -> dict[str, list[str]]:
    """The engines that are left out, by the reason why."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in ENGINES.items():
        if reason is not None:
            by_reason.setdefault(reason, []).append(name)
    return by_reason


def report() -> str:
    """One line: what was tested, and what was not."""
    skipped = [f"{', '.join(names)} ({reason})" for reason, names in engines_skipped().items()]
    line = f"engines tested: {', '.join(engines_tested())}"
    return f"{line}; skipped: {'; '.join(skipped)}" if skipped else line


def missing(required: Sequence[str]) -> list[str]:
    """A sentence for each required engine that is not tested."""
    return [
        f"{REQUIRE} names {name}: {ENGINES.get(name, 'no such engine')}"
        for name in required
        if name not in engines_tested()
    ]


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse to start without the engines that must be tested."""
    names = os.environ.get(REQUIRE, "").replace(",", " ").split()
    if faults := missing(names):
        raise pytest.UsageError(*faults)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it, just above the summary."""
    terminalreporter.write_line(report())
