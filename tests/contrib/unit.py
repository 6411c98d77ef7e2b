# SPDX-License-Identifier: Apache-2.0
"""A unit file of systemd, read and obeyed as far as a test can without systemd.

Run as a program, it is the step between systemd and the service: it takes upon itself what the unit
forbids (memory that is both written and run, system calls, address families, new privileges), and
becomes the command that it is given. The lists of system calls are systemd's own.
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
    """The settings of a unit file, each with the values of its lines in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.settings: dict[str, list[str]] = defaultdict(list)
        for line in path.read_text().splitlines():
            if found := re.match(r"(\w+)=(.*)", line):
                self.settings[found[1]].append(found[2])

    def __str__(self) -> str:
        return self.path.name

    def __getitem__(self, name: str) -> str:
        (value,) = self.settings[name]
        return value

    def command(self, variables: Mapping[str, str]) -> list[str]:
        """ExecStart as systemd expands it: `${X}` is one word, and `$X` as many as it holds."""
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
        """Those that SystemCallFilter leaves."""
        allowed = set(_in_set("@default"))
        for line in self.settings["SystemCallFilter"]:
            names = {name for part in line.removeprefix("~").split() for name in _in_set(part)}
            allowed = allowed - names if line.startswith("~") else allowed | names
        return allowed

    def confine(self) -> None:
        """Take upon this process, for good, what the unit forbids.

        Raises:
            OSError: the kernel does not know how.
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
    """The system calls of a set such as `@system-service`, or the one of that name."""
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
