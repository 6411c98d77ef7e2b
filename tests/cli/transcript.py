# SPDX-License-Identifier: Apache-2.0
"""Transcripts: what is typed, and what is printed, as in a shell.

    == A sentence: what this part shows

    $ berth provider create cn1             a command, run in this process
    created cn1 (<cn1>)                     its output; <cn1> is one word, always the same
    $ berth provider show <cn1>
    name    cn1
    ...                                     any lines, or, within a line, any text
    $ berth provider show cn2
    ! berth: no provider is named cn2; ...  a line on stderr
    $ berth provider list | tail -1         head, tail, grep and diff (with a file) are known
    1 provider in 1 tree
    $ cat > request.json                    a file, of the lines that follow
    {"groups": {"": {"resources": {"VCPU": 1}}}}
    $ berth candidates VCPU=1 --json > answer.json
    $ berth trait create CUSTOM_GOLD        without output: it succeeds, whatever it prints
    $ echo secret | berth user add alice --password-stdin
    $ ls                                    other programs too
    answer.json
    $ job=00000000-0000-4000-8000-000000000017          from here on, <job> stands for this

A line that starts with # is a comment. Of a usage error only the error is written, and not which
database is used. The exit code is written as [14], unless it is 2 after a usage error, 11 after
another, and else 0. What stands before the first part is run before each.
`--write-golden` writes what commands print where a ? stands, or something else: read it before you
commit it. <home> is the working directory.
"""

from __future__ import annotations

import difflib
import io
import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from tests.cli.in_process import InProcess
from tests.e2e.serving import run_berth

_PLACEHOLDER: Final = re.compile(r"<([a-z][a-z0-9-]*)>")

#: Placeholders that need not stand for the same text everywhere.
_PATTERNS: Final = {
    "date": r"20\d\d-\d\d-\d\d \d\d:\d\d",
    "time": r"(?:20\d\d-\d\d-\d\d )?\d\d:\d\d UTC",
    "iso": r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00",
    "n": r"[1-9][\d,]*",
    "x": r"\S+",
}

#: A text of so many characters is written as the placeholder that has stood for it.
_UNMISTAKABLE: Final = 30

#: Stands for what `--write-golden` is to write.
_TO_FILL: Final = "?"

#: Of a long line that differs, so much is shown.
_SHOWN: Final = 500


@dataclass
class Step:
    """A command, or the contents of a file, and the number of its first line."""

    command: str
    number: int
    lines: list[str] = field(default_factory=list)

    @property
    def file(self) -> str | None:
        """The name of the file, if it is one."""
        written = re.fullmatch(r"cat > (\S+)", self.command)
        return written and written[1]


@dataclass
class Part:
    """Some steps with a title."""

    title: str
    steps: list[Step] = field(default_factory=list)


def parts_of(path: Path) -> list[Part]:
    """The parts of a transcript; the first, without a title, is the beginning of each other."""
    parts = [Part("")]
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.startswith("== "):
            parts.append(Part(line[3:]))
        elif line.startswith("$ "):
            parts[-1].steps.append(Step(line[2:], number))
        elif not line.startswith("#") and line and parts[-1].steps:
            parts[-1].steps[-1].lines.append(line)
    return parts


@dataclass
class Shell:
    """Runs the steps of a part in a folder, which is the working directory.

    Attributes:
        programs: by name; others are run by a real shell.
        writes: write what was printed into the transcript where it differs.
    """

    programs: Mapping[str, InProcess]
    monkeypatch: pytest.MonkeyPatch
    folder: Path
    writes: bool = False
    _texts: dict[str, str] = field(default_factory=dict)

    def run(self, steps: Sequence[Step], transcript: Path) -> None:
        """Run the steps; each prints what it should."""
        self._texts["home"] = str(self.folder)
        for step in steps:
            if named := re.fullmatch(r"([a-z][a-z0-9-]*)=(\S+)", step.command):
                self._texts[named[1]] = named[2]
                continue
            if named := re.fullmatch(r"export (\w+)=(\S+)", step.command):
                self.monkeypatch.setenv(*named.groups())
                continue
            if unset := re.fullmatch(r"unset (\w+)", step.command):
                self.monkeypatch.delenv(unset[1])
                continue
            if step.file is not None:
                text = "".join(f"{self._filled(line)}\n" for line in step.lines)
                (self.folder / step.file).write_text(text)
                continue
            printed = self._printed(self._filled(step.command))
            if self._agree(step.lines, printed):
                continue
            if self.writes:
                self._write(step, printed, transcript)
                continue
            wanted = [self._filled(line) for line in step.lines]
            shown = "\n".join(line[:_SHOWN] for line in difflib.ndiff(wanted, printed))
            pytest.fail(
                f"{transcript.name}:{step.number}: $ {step.command}\n{shown}\n"
                "If that is meant, run the test again with --write-golden.",
                pytrace=False,
            )

    def _write(self, step: Step, printed: Sequence[str], transcript: Path) -> None:
        lines = "".join(f"{line}\n" for line in printed)
        for name, text in self._texts.items():
            if len(text) >= _UNMISTAKABLE:
                lines = lines.replace(text, f"<{name}>")
        lines = re.sub(_PATTERNS["date"], "<date>", lines)
        there = re.escape("".join(f"{line}\n" for line in (f"$ {step.command}", *step.lines)))
        text = re.sub(
            rf"^{there}(?=[$\n#]|==|\Z)",
            lambda _: f"$ {step.command}\n{lines}",
            transcript.read_text(),
            count=1,
            flags=re.MULTILINE,
        )
        transcript.write_text(text)

    def _printed(self, command: str) -> list[str]:
        """What a command prints: the lines of stdout, those of stderr, the exit code."""
        command, _, file = command.partition(" > ")
        typed, bar, rest = command.partition(" | ")
        stdin = None
        if bar and typed.startswith("echo "):
            stdin = io.StringIO("".join(f"{word}\n" for word in shlex.split(typed)[1:]))
            typed, _, rest = rest.partition(" | ")
        words = shlex.split(typed)
        if words[:1] == ["berth"] and "serve" in words:
            # It sets up the logging of its process.
            named = {name: text for name, text in os.environ.items() if name.startswith("OS_")}
            done = run_berth(self.folder, *words[1:], variables=named)
        elif words[0] in self.programs:
            done = self.programs[words[0]](*words[1:], stdin=stdin)
        else:
            done = subprocess.run(
                command, shell=True, cwd=self.folder, capture_output=True, text=True, check=False
            )
            rest = ""
        # Empty lines separate nothing in a transcript.
        lines = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
        for filtering in filter(None, rest.split(" | ")):
            kind, argument = shlex.split(filtering)
            lines = self._filtered(lines, kind, argument)
        if file:
            (self.folder / file).write_text("".join(f"{line}\n" for line in lines))
            lines = []
        stderr = re.sub(r"\A(Database: .*\n)?(Usage: .*\nTry '.*\n\n)?", "", done.stderr)
        errors = [f"! {line}".rstrip() for line in stderr.splitlines()]
        last = "".join(errors[-1:])
        usual = 2 if last.startswith("! Error: ") else 11 if last.startswith("! berth: ") else 0
        ending = [f"[{done.returncode}]"] if done.returncode != usual else []
        return [*lines, *errors, *ending]

    def _filtered(self, lines: list[str], kind: str, argument: str) -> list[str]:
        if kind == "head":
            return lines[: -int(argument)]
        if kind == "tail":
            return lines[int(argument) :]
        if kind == "grep":
            return [line for line in lines if re.search(argument, line)]
        assert kind == "diff", f"{kind} is not known here"
        there = (self.folder / argument).read_text().splitlines()
        return [line for line in difflib.ndiff(there, lines) if not line.startswith(" ")]

    def _filled(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda match: self._texts.get(match[1], match[0]), text)

    def _agree(self, lines: Sequence[str], printed: Sequence[str]) -> bool:
        if lines == [_TO_FILL]:
            return False
        if not lines:
            return not any(line.startswith(("!", "[")) for line in printed)
        pattern = "".join(self._patterns(lines))
        match = re.fullmatch(pattern, "".join(f"{line}\n" for line in printed))
        if match is None:
            return False
        self._texts |= {
            name.replace("_", "-"): text for name, text in match.groupdict().items() if text
        }
        return True

    def _patterns(self, lines: Sequence[str]) -> Iterator[str]:
        """A regular expression for each line, with its end."""
        named: set[str] = set()
        for line in map(self._filled, lines):
            if line == "...":
                yield r"(?:.*\n)*"
                continue
            for piece in re.split(r"(<[a-z][a-z0-9-]*>|\.\.\.)", line):
                if piece == "...":
                    yield ".*"
                elif match := _PLACEHOLDER.fullmatch(piece):
                    name = match[1].replace("-", "_")
                    if match[1] in _PATTERNS:
                        yield _PATTERNS[match[1]]
                    elif name in named:
                        yield f"(?P={name})"
                    else:
                        named.add(name)
                        yield rf"(?P<{name}>[^\s,;:()\"]+)"
                else:
                    yield re.escape(piece)
            yield r"\n"
