# SPDX-License-Identifier: Apache-2.0
"""Plant small faults in the product, one at a time, and say which tests find them.

    python tools/plant.py                          # every fault: the tests named for it, then all
    python tools/plant.py --named                  # only the tests named for it
    python tools/plant.py --named --sample 20      # some faults, others in each run
    python tools/plant.py store-no-rollback        # these faults
    python tools/plant.py --check                  # which no longer apply; plants nothing

The faults are in tests/planted/*.yaml, made by hand. Each is anchored by its text: one that no
longer occurs exactly once is an error, and wants a new anchor or its end. The exit status is 0 if
every fault was found, or, with --check, applies. A fault that nothing can tell from outside says
why in its member `equivalent`, and is not planted.

Run it where the tests pass: a test that fails anyway finds everything.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Final, NamedTuple

import msgspec

ROOT: Final = Path(__file__).parent.parent
FAULTS: Final = "tests/planted"

#: Tests that take longer hang, which is noticed too.
_NAMED_SECONDS_MAX: Final = 300
_ALL_SECONDS_MAX: Final = 1800
_END_SECONDS_MAX: Final = 30

#: The runs of tests to end if this one is.
_under_way: Final[set[subprocess.Popen[str]]] = set()


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A small mistake that somebody could make.

    Attributes:
        harm: what a user would say about it.
        old: a part of one line, or several whole lines from the left margin; it occurs once.
        new: what stands there instead; nothing deletes it.
        tests: pytest's ids of the tests that are to find it.
        equivalent: why nothing can tell it from the right code; empty if something can.
    """

    id: str
    file: str
    harm: str
    old: str
    new: str
    tests: tuple[str, ...]
    equivalent: str = ""

    def plant(self, text: str) -> str:
        """The text of its file with the fault.

        Raises:
            ValueError: it does not apply.
        """
        if "\n" not in self.old:
            if (times := text.count(self.old)) != 1:
                raise ValueError(f"{self.file} has its text {times} times, not once")
            return text.replace(self.old, self.new)
        lines = text.split("\n")
        old = self.old.rstrip("\n").split("\n")
        places = [at for at in range(len(lines)) if _stand_at(lines, at, old)]
        if len(places) != 1:
            raise ValueError(f"{self.file} has its lines {len(places)} times, not once")
        (at,) = places
        new = self.new.rstrip("\n").split("\n") if self.new else []
        lines[at : at + len(old)] = _indented(new, _indent(lines[at]))
        return "\n".join(lines)


class Outcome(NamedTuple):
    """What became of a planted fault."""

    fault: Fault
    #: The first test that failed; empty if none did.
    found_by: str
    seconds: float
    #: Whether the tests named for it found it.
    by_named: bool = True

    def __str__(self) -> str:
        if not self.found_by:
            return f"NOT FOUND  {self.fault.id} ({self.seconds:.1f} s): {self.fault.harm}"
        others = "" if self.by_named else ", which is not named for it"
        return f"found      {self.fault.id} after {self.seconds:.1f} s by {self.found_by}{others}"


def read_faults(folder: Path) -> list[Fault]:
    """All faults, in the order of their files.

    Raises:
        ValueError: two have one id.
    """
    faults = [
        fault
        for path in sorted(folder.glob("*.yaml"))
        for fault in msgspec.yaml.decode(path.read_bytes(), type=list[Fault])
    ]
    twice = [name for name, times in Counter(fault.id for fault in faults).items() if times > 1]
    if twice:
        raise ValueError(f"several faults have one id: {', '.join(twice)}")
    return faults


def why_not(fault: Fault, root: Path) -> str:
    """Why a fault does not apply to a checkout; empty if it does."""
    try:
        text = fault.plant((root / fault.file).read_text())
    except (OSError, ValueError) as error:
        return str(error)
    if fault.file.endswith(".py"):
        try:
            compile(text, fault.file, "exec", dont_inherit=True)
        except SyntaxError as error:
            # Every test would find it.
            return f"with the fault planted, {fault.file} is not valid Python (line {error.lineno})"
    if not fault.tests and not fault.equivalent:
        return "no test is named for it"
    for test in fault.tests:
        # Of a test with parameters, the row is not looked for.
        path, *names = test.partition("[")[0].split("::")
        if not (root / path).is_file():
            return f"there is no {path}"
        text = (root / path).read_text()
        for name in names:
            if not re.search(rf"(def|class) {re.escape(name)}\b", text):
                return f"{path} has no {name}"
    return ""


def find(fault: Fault, copy: Path, *, named_only: bool, jobs: int) -> Outcome:
    """Plant a fault in a copy of the checkout, run the tests, and take it out again."""
    path = copy / fault.file
    right = path.read_text()
    started = monotonic()
    path.write_text(fault.plant(right))
    try:
        found_by = _first_failure(copy, [*fault.tests, "-n", "0"], _NAMED_SECONDS_MAX)
        by_named = bool(found_by)
        if not found_by and not named_only:
            found_by = _first_failure(copy, ["-n", str(jobs)], _ALL_SECONDS_MAX)
        return Outcome(fault, found_by, monotonic() - started, by_named)
    finally:
        path.write_text(right)


def _first_failure(copy: Path, arguments: Sequence[str], seconds_max: int) -> str:
    """The first test of a run that fails; empty if all pass.

    Raises:
        RuntimeError: the tests did not run.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-rfE", "-p", "no:cacheprovider"]
    command += ["--engines", "sqlite", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    # See tests/conftest.py.
    environment["BERTH_PLANTED"] = "1"
    environment.pop("BERTH_REQUIRE_ENGINES", None)
    with subprocess.Popen(
        command,
        cwd=copy,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as tests:
        _under_way.add(tests)
        try:
            output, _ = tests.communicate(timeout=seconds_max)
        except subprocess.TimeoutExpired:
            _end(tests, tests.communicate)
            return f"a test that hung for {seconds_max} s"
        finally:
            _under_way.discard(tests)
    if tests.returncode == 0:
        return ""
    failure = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    if failure is not None:
        return failure[1]
    if tests.returncode in (1, 2):
        return "the end of its process"
    raise RuntimeError(f"pytest ended with {tests.returncode}:\n{output[-2000:]}")


def _end(tests: subprocess.Popen[str], wait: Callable[..., object]) -> None:
    """End a run of tests as Ctrl-C does, which stops the servers that it has started.

    Args:
        wait: of the process: `communicate` in the thread that reads its output, and `wait` in any
            other, because only one thread can read it.
    """
    with suppress(ProcessLookupError):
        os.killpg(tests.pid, signal.SIGINT)
        try:
            wait(timeout=_END_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(tests.pid, signal.SIGKILL)


@contextmanager
def copies(number: int) -> Iterator[SimpleQueue[Path]]:
    """Copies of the checkout, with what is not committed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    with tempfile.TemporaryDirectory(prefix="berth-plant-") as folder:
        made: SimpleQueue[Path] = SimpleQueue()
        for place in range(number):
            copy = Path(folder, str(place))
            for name in filter(None, listed.split("\0")):
                if (ROOT / name).is_file():
                    (copy / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / name, copy / name)
            if (modules := ROOT / "tools/web/node_modules").exists():
                (copy / "tools/web/node_modules").symlink_to(modules)
            made.put(copy)
        yield made


def _stand_at(lines: Sequence[str], at: int, wanted: Sequence[str]) -> bool:
    return lines[at : at + len(wanted)] == _indented(wanted, _indent(lines[at]))


def _indented(lines: Sequence[str], indent: str) -> list[str]:
    return [f"{indent}{line}" if line else "" for line in lines]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _report(outcomes: Sequence[Outcome]) -> str:
    """The last line: how many were found, and how fast."""
    named = [outcome for outcome in outcomes if outcome.found_by and outcome.by_named]
    others = [outcome for outcome in outcomes if outcome.found_by and not outcome.by_named]
    median = statistics.median([outcome.seconds for outcome in named] or [0])
    return (
        f"{len(named)} of {len(outcomes)} planted faults were found by the tests named for them "
        f"(median {median:.1f} s), {len(others)} by others, "
        f"{len(outcomes) - len(named) - len(others)} by none"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("ids", nargs="*", metavar="ID", help="of a fault; all without one")
    parser.add_argument("--check", action="store_true", help="only say which no longer apply")
    parser.add_argument("--named", action="store_true", help="run only the tests named for a fault")
    parser.add_argument("--sample", type=int, metavar="N", help="only N faults, others in each run")
    parser.add_argument("--seed", type=int, help="of the sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="side by side")
    chosen = parser.parse_args(arguments)

    faults = read_faults(ROOT / FAULTS)
    reasons = {fault.id: reason for fault in faults if (reason := why_not(fault, ROOT))}
    for name, reason in reasons.items():
        print(f"DOES NOT APPLY  {name}: {reason}")
    if chosen.check or reasons:
        print(f"{len(faults) - len(reasons)} of {len(faults)} planted faults apply")
        return bool(reasons)
    if unknown := set(chosen.ids) - {fault.id for fault in faults}:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}")
    faults = [fault for fault in faults if not fault.equivalent]
    if chosen.ids:
        faults = [fault for fault in faults if fault.id in chosen.ids]
    if chosen.sample is not None:
        seed = random.randrange(2**32) if chosen.seed is None else chosen.seed
        print(f"a sample by --seed {seed}", flush=True)
        faults = random.Random(seed).sample(faults, min(chosen.sample, len(faults)))

    # What a run leaves behind when it is stopped: nothing.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcomes = []
    with copies(chosen.jobs) as free, ThreadPoolExecutor(chosen.jobs) as pool:

        def tried(fault: Fault) -> Outcome:
            copy = free.get()
            try:
                return find(fault, copy, named_only=chosen.named, jobs=chosen.jobs)
            finally:
                free.put(copy)

        try:
            for outcome in pool.map(tried, faults):
                print(outcome, flush=True)
                outcomes.append(outcome)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for tests in list(_under_way):
                _end(tests, tests.wait)
            raise
    print(_report(outcomes))
    return not all(outcome.found_by and outcome.by_named for outcome in outcomes)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("interrupted")
