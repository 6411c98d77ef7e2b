# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: which database engines this run tests, said in one line at its end.

A test that asks for the fixture `engine`, by itself or through another such as `database_url`, is
run once for each engine; `@pytest.mark.engines("postgresql", "mariadb")` names those it is for.
With BERTH_EFFORT below 1, it is run on SQLite and on one of the servers, another in each run; a run
without thorough tests leaves out Galera, which takes three nodes, unless it is required.

`--engines sqlite,postgresql` leaves the others out of a run. `BERTH_REQUIRE_ENGINES` names, in the
same way, the engines that must be tested: where one of them cannot be, the run fails before its
first test. Nothing else makes a missing engine a failure, so that the tests pass on a machine
without servers, and say what they left out.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NoReturn

import pytest
from _pytest.mark import ParameterSet

from tests.effort import few_of, has_thorough
from tests.servers.binaries import why_missing

pytest_plugins = ["tests.servers.fixtures"]

REQUIRE = "BERTH_REQUIRE_ENGINES"


def _why_no_galera() -> str | None:
    if not has_thorough() and "galera" not in os.environ.get(REQUIRE, ""):
        return "left to `.ci/run`"
    return why_missing("galera")


#: The engines of this release, and the reason for each that cannot be tested here.
ENGINES: dict[str, str | None] = {
    "sqlite": None,
    "postgresql": why_missing("postgresql"),
    "mariadb": why_missing("mariadb"),
    "galera": _why_no_galera(),
}

#: The engines that a test of this run has used.
used: set[str] = {"sqlite"}

#: Other services that tests start, and why one of them could not be had.
not_had: dict[str, str] = {}


def engines_tested() -> list[str]:
    """The engines that the tests of this run can use."""
    return [name for name, reason in ENGINES.items() if reason is None]


def engines_skipped() -> dict[str, list[str]]:
    """The engines that are left out, by the reason why."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in ENGINES.items():
        if reason is None and name not in used:
            reason = "no test of this run asked for it"
        if reason is not None:
            by_reason.setdefault(reason, []).append(name)
    return by_reason


def report() -> str:
    """One line: what was tested, and what was not."""
    skipped = [f"{', '.join(names)} ({reason})" for reason, names in engines_skipped().items()]
    skipped += [f"{name} ({reason})" for name, reason in not_had.items()]
    tested = [name for name in engines_tested() if name in used]
    line = f"engines tested: {', '.join(tested)}"
    return f"{line}; skipped: {'; '.join(skipped)}" if skipped else line


def missing(required: Sequence[str]) -> list[str]:
    """A sentence for each required engine that cannot be tested."""
    return [
        f"{REQUIRE} names {name}: {ENGINES.get(name, 'no such engine')}"
        for name in required
        if name not in engines_tested()
    ]


def engine_of(item: pytest.Item) -> str | None:
    """The engine that a test is for, if it asks for one."""
    call = getattr(item, "callspec", None)
    return call.params.get("engine") if call else None


def need(engine: str) -> None:
    """Note that a test uses an engine, or skip it with the reason why that cannot be."""
    if (reason := ENGINES[engine]) is not None:
        pytest.skip(f"{engine}: {reason}")
    used.add(engine)


def leave_out(service: str, reason: str) -> NoReturn:
    """Skip what needs a service that cannot be had, or fail where the run must test its engines."""
    not_had[service] = reason
    said = f"{service} cannot be had: {reason}"
    if os.environ.get(REQUIRE):
        pytest.fail(said)
    pytest.skip(said)


def names_in(text: str) -> list[str]:
    """The engines that a comma-separated list names."""
    return text.replace(",", " ").split()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("berth")
    group.addoption(
        "--whole-api",
        action="store_true",
        help="on servers too, run each wire test with all of its sets of parameters",
    )
    group.addoption(
        "--engines",
        metavar="NAMES",
        help=f"test only these of the engines {', '.join(ENGINES)}, as far as they are here",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Leave out the engines that were not chosen, and declare the mark."""
    config.addinivalue_line(
        "markers", "engines(name, ...): a test with an `engine` is only for these engines"
    )
    if (chosen := config.getoption("--engines")) is None:
        return
    if unknown := set(names_in(chosen)) - set(ENGINES):
        raise pytest.UsageError(f"--engines names {', '.join(sorted(unknown))}: no such engine")
    for name in set(ENGINES) - set(names_in(chosen)):
        ENGINES[name] = "not among --engines"


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse to start without the engines that must be tested."""
    if faults := missing(names_in(os.environ.get(REQUIRE, ""))):
        raise pytest.UsageError(*faults)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for `engine` once for each that it is for; without any, skip it."""
    if "engine" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("engines")
        wanted = mark.args if mark else tuple(ENGINES)
        here = [name for name in wanted if ENGINES[name] is None]
        if metafunc.config.getoption("--engines") is None:
            here = _some_servers(here, metafunc.definition.nodeid)
        # For the whole session, so that whatever is made for an engine may serve many tests.
        metafunc.parametrize("engine", here or [_skipped(name) for name in wanted], scope="session")


def _some_servers(names: list[str], test: str) -> list[str]:
    """A file, and of the servers one in a run of little effort."""
    servers = few_of([name for name in names if name != "sqlite"], test)
    return [name for name in names if name == "sqlite" or name in servers]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Tell the process that writes the summary which engines this one has used."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["engines"] = sorted(used)
        output["not had"] = not_had


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Hear that from a process that shared the tests."""
    output = getattr(node, "workeroutput", {})
    used.update(output.get("engines", ()))
    not_had.update(output.get("not had", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it, just above the summary."""
    terminalreporter.write_line(report())


def _skipped(name: str) -> ParameterSet:
    reason = f"{name}: {ENGINES[name]}"
    return pytest.param(name, marks=pytest.mark.skip(reason=reason))
