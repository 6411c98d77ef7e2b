# SPDX-License-Identifier: Apache-2.0
"""Runs a command both ways: over HTTP against a service, and on a database without a service.

Each way has a database of its own, which only these commands change, so that both must print the
same.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.cli.in_process import InProcess


@dataclass(frozen=True)
class Printed:
    """How a command ended, and what it printed."""

    code: int
    stdout: str
    stderr: str

    @property
    def lines(self) -> list[str]:
        """Its output, line by line."""
        return self.stdout.splitlines()

    @property
    def answer(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.stdout)


@dataclass(frozen=True)
class BothWays:
    """Runs commands in this process, over HTTP and on the database."""

    run: InProcess
    url: str
    conf: Path

    def __call__(self, *arguments: str) -> Printed:
        """Run a command both ways; the outputs are equal."""
        over_http = self.over_http(*arguments)
        on_database = self.on_database(*arguments)
        assert on_database == over_http
        return over_http

    def ok(self, *arguments: str) -> Printed:
        """Run a command that succeeds both ways."""
        printed = self(*arguments)
        assert (printed.code, printed.stderr) == (0, ""), printed
        return printed

    def warned(self, *arguments: str) -> Printed:
        """Run a command that succeeds both ways, with a warning on stderr."""
        printed = self(*arguments)
        assert printed.code == 0 and printed.stderr.startswith("warning: "), printed
        return printed

    def over_http(self, *arguments: str) -> Printed:
        """Run a command against the service."""
        return self._run(*arguments, "--url", self.url, "--token", "admin")

    def on_database(self, *arguments: str) -> Printed:
        """Run a command without a service; it says first which database it opens."""
        printed = self._run(*arguments, "--config-file", str(self.conf))
        first, newline, others = printed.stderr.partition("\n")
        if printed.code == 2 and not first.startswith("Database: "):
            return printed
        assert (first, newline) == (f"Database: sqlite:///{self.conf.parent}/berth.db", "\n")
        return replace(printed, stderr=others)

    def _run(self, *arguments: str) -> Printed:
        done = self.run(*arguments)
        # The links of an answer have the path that the API is mounted under, and its revision has
        # the identity of the database. The two ways run one after the other.
        same = re.sub(r'"revision": *"[^"]*"', '"revision":"b1.of-either"', done.stdout)
        same = re.sub(r"20\d\d(-\d\d){2} \d\d:\d\d", "2026-11-23 22:40", same)
        same = re.sub(r'"created_at": *"[^"]*"', '"created_at":"2026-11-23T22:40:00Z"', same)
        return Printed(done.returncode, same.replace('"/placement/', '"/'), done.stderr)
