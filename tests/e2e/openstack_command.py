# SPDX-License-Identifier: Apache-2.0
"""The `openstack` command of this Python, for one service.

It takes over a second of a processor to import itself and its plugins, and little for the request.
So one process imports them, and forks for each command.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.e2e.serving import environment

#: Reads commands, each a line of JSON with the arguments and the files for both outputs, and prints
#: the exit code of each. Each command would load all plugins.
_RUN_EACH = """
import gc, json, os, sys
from importlib.metadata import entry_points
from openstackclient import shell

def direct(path, flags, number):
    os.dup2(os.open(path, flags), number)

for group in entry_points().groups:
    if group.startswith("openstack."):
        for point in entry_points(group=group):
            point.load()
gc.freeze()
for line in sys.stdin:
    arguments, out, err = json.loads(line)
    if not (child := os.fork()):
        direct(os.devnull, os.O_RDONLY, 0)
        direct(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 1)
        direct(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 2)
        code = shell.main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@dataclass(frozen=True)
class OpenStack:
    """The `openstack` command, for one service."""

    url: str
    #: For the outputs of a command.
    home: Path
    process: subprocess.Popen[str]

    def __call__(self, *arguments: str) -> Any:
        """Run a command that lists or shows something; return its JSON."""
        return json.loads(self.do(*arguments, "-f", "json"))

    def do(self, *arguments: str) -> str:
        """Run a command; return its output."""
        done = self.run(*arguments)
        assert done.returncode == 0, f"openstack {' '.join(arguments)}\n{done.stderr}"
        return done.stdout

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, whatever its exit code."""
        out, err = self.home / "openstack.out", self.home / "openstack.err"
        command = [
            *("--os-auth-type", "admin_token", "--os-token", "admin"),
            *("--os-endpoint", self.url, "--os-placement-api-version", "1.39"),
            *arguments,
        ]
        print(json.dumps([command, str(out), str(err)]), file=_pipe(self.process.stdin), flush=True)
        code = _pipe(self.process.stdout).readline()
        assert code, "the process that runs openstack has ended"
        return subprocess.CompletedProcess(command, int(code), out.read_text(), err.read_text())


@contextmanager
def openstack_command(url: str, home: Path) -> Iterator[OpenStack]:
    """The command for the service at a URL, for as long as the block lasts."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _RUN_EACH],
        env=environment(home),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield OpenStack(url, home, process)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
