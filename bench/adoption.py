# SPDX-License-Identifier: Apache-2.0
"""How long `berth db upgrade` takes to take over a full database of Placement.

Placement makes the tables, and a fleet in use is written into them in bulk: what is counted is
the whole command, from its start until it ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.fleet import Fleet, full_flat
from bench.results import ORIGINAL
from bench.sample import Sample, Samples, clock
from bench.services import write_for

_ROOT: Final = Path(__file__).resolve().parent.parent
_CROWD_SHARE: Final = 10
_WORDS_CHARACTERS: Final = 2000

#: What is run, in this order, and what it is to the reader.
_COMMANDS: Final = {
    "upgrade": "Placement's database taken over",
    "check": "everything checked afterwards",
}


class CommandFailed(RuntimeError):
    """A command of berth's did not do what it was to do."""


def adoption_fleet(hosts_count: int, allocations_count: int) -> Fleet:
    """A fleet in use; a tenth of the allocations are of one provider."""
    crowd = allocations_count // _CROWD_SHARE
    return full_flat(hosts_count, allocations_count=allocations_count, crowd=crowd)


def adopt(url: str, fleet: Fleet, directory: Path) -> Samples:
    """Fill a database of Placement in place, and take it over.

    Args:
        url: an empty database.
        directory: an empty one, for configurations.

    Raises:
        CommandFailed: with the end of what it said.
    """
    write_for(ORIGINAL, url, fleet, directory)
    configuration = directory / "berth.conf"
    configuration.write_text(f"[placement_database]\nconnection = {url}\n")
    return {
        case: Sample(
            [_seconds_of(["db", command, "--config-file", str(configuration)])], unit="seconds"
        )
        for command, case in _COMMANDS.items()
    }


def _seconds_of(arguments: Sequence[str]) -> float:
    start = clock()
    done = subprocess.run(
        [sys.executable, "-m", "berth.cli", *arguments],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    elapsed = clock() - start
    if done.returncode != 0:
        raise CommandFailed(f"berth {' '.join(arguments)}: {done.stderr[-_WORDS_CHARACTERS:]}")
    return elapsed
