# SPDX-License-Identifier: Apache-2.0
"""A systemd unit file, and its restrictions, as far as a test can apply them without systemd.

As a program it stands between systemd and the service: it applies the unit's restrictions to itself
(memory that is writable and executable, system calls, address families, new privileges), and then
executes the command. The lists of system calls are systemd's own.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import socket
import string
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

#: From linux/prctl.h.
_SET_NO_NEW_PRIVS = 38
_SET_MDWE = 65
_MDWE_REFUSE_EXEC_GAIN = 1


class Unit:
    """The settings of a unit file, each with the values of its lines in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: dict[str, list[str]] = defaultdict(list)
        for line in path.read_text().splitlines():
            if match := re.match(r"(\w+)=(.*)", line):
                self.settings[match[1]].append(match[2])

    def __str__(self) -> str:
        return self.path.name

    def __getitem__(self, name: str) -> str:
        (value,) = self.settings[name]
        return value

    def command(self, variables: Mapping[str, str]) -> list[str]:
        """ExecStart as systemd expands it: `${X}` is one word, `$X` is split into words."""
        told = {
            **dict(
                pair.split("=", 1) for line in self.settings["Environment"] for pair in line.split()
            ),
            **variables,
        }
        words: list[str] = []
        for word in self["ExecStart"].split():
            if re.fullmatch(r"\$\w+", word):
                words += told.get(word[1:], "").split()
            else:
                words.append(string.Template(word).substitute(told))
        return words

    def system_calls(self) -> set[str]:
        """The system calls that SystemCallFilter allows."""
        allowed = set(_in_set("@default"))
        for line in self.settings["SystemCallFilter"]:
            names = {name for part in line.removeprefix("~").split() for name in _in_set(part)}
            allowed = allowed - names if line.startswith("~") else allowed | names
        return allowed

    def confine(self) -> None:
        """Apply the unit's restrictions to this process; they cannot be undone.

        Raises:
            OSError: the kernel does not support it.
        """
        import pyseccomp

        libc = ctypes.CDLL(None, use_errno=True)
        _prctl(libc, _SET_NO_NEW_PRIVS, 1)
        if self["MemoryDenyWriteExecute"] == "yes":
            _prctl(libc, _SET_MDWE, _MDWE_REFUSE_EXEC_GAIN)
        refusal = pyseccomp.ERRNO(errno.EPERM)
        calls = pyseccomp.SyscallFilter(refusal)
        for name in self.system_calls() - {"socket"}:
            if pyseccomp.resolve_syscall(pyseccomp.Arch.NATIVE, name) >= 0:
                calls.add_rule(pyseccomp.ALLOW, name)
        for family in self["RestrictAddressFamilies"].split():
            number = int(getattr(socket, family))
            calls.add_rule(pyseccomp.ALLOW, "socket", pyseccomp.Arg(0, pyseccomp.EQ, number))
        calls.load()


def _in_set(name: str) -> set[str]:
    """The system calls of a set such as `@system-service`, or the one with this name."""
    if not name.startswith("@"):
        return {name}
    listed = subprocess.run(
        ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
    )
    names = (line.strip() for line in listed.stdout.splitlines()[1:])
    return {call for name in names if name and name[0] != "#" for call in _in_set(name)}


def _prctl(libc: ctypes.CDLL, option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


if __name__ == "__main__":
    Unit(Path(sys.argv[1])).confine()
    os.execv(sys.argv[2], sys.argv[2:])
