# SPDX-License-Identifier: Apache-2.0
"""A server program as a process: started, stopped, killed, frozen, always with its descendants."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.serving import PATIENCE, wait_until
from tests.servers.family import family_of, is_alive, kill_family, signal_all
from tests.servers.guard import the_guard

#: A program and its arguments.
Command = Sequence[str | Path]


@dataclass(frozen=True)
class Account:
    """The user of this machine as which a server runs."""

    name: str
    uid: int
    gid: int


def account_for(*names: str) -> Account:
    """The account of a server: this user; for root, the first of `names` that exists.

    PostgreSQL refuses to run as root, and the tests should not need more permissions than a
    server's account has.
    """
    if os.getuid() != 0:
        return own_account()
    for name in (*names, "nobody"):
        with suppress(KeyError):
            return _account(pwd.getpwnam(name))
    raise KeyError(f"none of the users {', '.join(names)}, nobody exists")


def own_account() -> Account:
    """The user who runs the tests."""
    return _account(pwd.getpwuid(os.getuid()))


def make_directory(owner: Account) -> Path:
    """A temporary directory owned by an account, which is removed with the tests."""
    path = Path(tempfile.mkdtemp(prefix="berth-test-"))
    the_guard().watch("directory", path)
    os.chown(path, owner.uid, owner.gid)
    return path


def remove_directory(path: Path) -> None:
    """Remove a directory that `make_directory` made."""
    shutil.rmtree(path, ignore_errors=True)
    the_guard().forget("directory", path)


def run_tool(command: Command, account: Account, directory: Path) -> str:
    """Run a program to its end; return its output on stdout and stderr."""
    process = _launch(command, account, directory, subprocess.PIPE)
    try:
        said = process.communicate(timeout=PATIENCE)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        kill_family(process.pid)
        raise
    assert process.returncode == 0, f"{command[0]} failed:\n{said}"
    return said


class ServerProcess:
    """A server program. Its output is appended to `log`."""

    def __init__(self, account: Account, directory: Path, log: Path) -> None:
        self._account = account
        self._directory = directory
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, command: Command) -> None:
        """Start the program, without waiting until it answers."""
        assert not self.is_running(), f"{command[0]} runs already"
        with self._log.open("ab") as log:
            self._process = _launch(command, self._account, self._directory, log.fileno())
        the_guard().watch("process", self._process.pid)

    @property
    def process_id(self) -> int:
        """The id of the started process, the parent of the others."""
        assert self._process is not None, "the server is down"
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the program was started and has not exited."""
        return self._process is not None and self._process.poll() is None

    def stop(self, number: signal.Signals) -> None:
        """Send it the signal with which it stops cleanly, and wait until it has exited."""
        if self._process is None:
            return
        self._process.send_signal(number)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(PATIENCE)
        self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL, as the kernel does when memory is short; waits for the last
        process."""
        if self._process is None:
            return
        # A process that was waited for has no family that could be found by its id.
        family = kill_family(self._process.pid) if self._process.returncode is None else []
        self._process.wait(PATIENCE)
        wait_until(lambda: not any(map(is_alive, family)), f"{family} to be gone")
        the_guard().forget("process", self._process.pid)
        self._process = None

    def pause(self) -> None:
        """Freeze it: it answers nothing, and its connections stay open."""
        assert self._process is not None
        signal_all([self._process.pid], signal.SIGSTOP)
        signal_all(family_of(self._process.pid), signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it."""
        assert self._process is not None
        signal_all(family_of(self._process.pid), signal.SIGCONT)

    def wait_until_ready(self, is_ready: Callable[[], bool]) -> None:
        """Wait until a server answers; a failure shows the end of its log."""
        try:
            wait_until(lambda: not self.is_running() or is_ready(), "the server to answer")
            assert self.is_running(), "the server ended instead of answering"
        except AssertionError as error:
            error.add_note(self.last_words())
            raise

    def last_words(self) -> str:
        """The end of its log."""
        return self._log.read_text(errors="replace")[-4000:]


def _account(user: pwd.struct_passwd) -> Account:
    return Account(user.pw_name, user.pw_uid, user.pw_gid)


def _launch(
    command: Command, account: Account, directory: Path, output: int
) -> subprocess.Popen[bytes]:
    change = os.getuid() != account.uid
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        cwd=directory,
        # Nothing of the caller's that could configure a server. Galera's scripts look for tools.
        env={
            "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin",
            "LC_ALL": "C.UTF-8",
            "HOME": str(directory),
            "TMPDIR": str(directory),
        },
        # A session of its own: what is meant for the tests' terminal is not meant for a server.
        start_new_session=True,
        user=account.uid if change else None,
        group=account.gid if change else None,
        extra_groups=[] if change else None,
    )
