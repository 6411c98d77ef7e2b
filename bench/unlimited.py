# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.unlimited`: candidates without a limit, and how their cost grows with the bytes
of the answer.

Each fleet is asked in a process that does nothing else, at old and new microversions, in three
states of the memory: too small for any texts, empty, and as an answer before left it. Processor
time does not count what other programs do meanwhile. Over HTTP, it is that of the worker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import click
import msgspec
from rich.console import Console
from rich.table import Table

from bench.flat import EVERY_HOST, path_of
from bench.fleet import Fleet, flat, nested, sharing
from bench.growth import exponent
from bench.http1 import Requests
from bench.nested import NESTED
from bench.processor import processes_s, worker_ids
from bench.results import BEFORE, BERTH
from bench.sample import Round, Sample, asking, timed
from bench.server import RunningServer, serve_berth
from bench.services import write_for

SIZES: Final = (1_000, 10_000, 100_000)
_ONE_NODE: Final = "resources=VCPU:2,MEMORY_MB:1024"
_TWO_GROUPS: Final = f"{_ONE_NODE.replace('=', '1=', 1)}&resources2=PGPU:1&group_policy=none"

#: Fleet -> (how to make it, minor version -> query). Trees are described whole from 1.29 on.
KINDS: Final = {
    "flat": (flat, dict.fromkeys((10, 12, 29, 39), EVERY_HOST)),
    "nested": (nested, {10: _ONE_NODE, 12: _ONE_NODE, 29: _TWO_GROUPS, 39: NESTED}),
    "sharing": (sharing, dict.fromkeys((10, 12, 29, 39), EVERY_HOST)),
}

_HTTP_MINOR: Final = 39
#: The kernel counts in hundredths of a second.
_HTTP_TIMES: Final = 20
_NO_LIMITS: Final = "[berth]\ncandidates_answer_mib_max = 0\ncandidates_time_budget = 0\n"
_PROCESS: Final = Path(__file__).with_name("unlimited_process.py")
_ROOT: Final = Path(__file__).resolve().parent.parent


class Found(msgspec.Struct, frozen=True):
    """The cost of one answer.

    Attributes:
        name: the fleet and the minor version.
        state: of the memory.
        seconds: processor time: the median, or over HTTP the mean.
        peak_mib: how much memory it takes at most beyond what the process had before.
        digest: of the answer; "" where it is not known.
    """

    service: str
    size: int
    name: str
    state: str
    seconds: float
    bytes: int
    peak_mib: float
    digest: str = ""


def in_process(
    service: str, kind: str, fleet: Fleet, url: str, checkout: Path, seconds: float
) -> Iterator[Found]:
    """Ask a fleet without HTTP, with the berth of a checkout."""
    _, queries = KINDS[kind]
    questions = {f"{kind} 1.{minor}": (minor, query) for minor, query in queries.items()}
    arguments = {"url": url, "questions": questions, "seconds": seconds}
    # -P: the modules of this folder must not hide others of the same name.
    command = [_python(checkout), "-P", str(_PROCESS), json.dumps(arguments)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    for result in output.splitlines():
        about = {"service": service, "size": fleet.size}
        yield msgspec.convert({**about, **msgspec.json.decode(result)}, Found)


def over_http(
    service: str, kind: str, fleet: Fleet, url: str, checkout: Path, directory: Path
) -> Iterator[Found]:
    """Ask a fleet through a service with one worker, which has answered the same before."""
    _, queries = KINDS[kind]
    with serve_berth(
        directory,
        workers=1,
        extra_configuration=_NO_LIMITS,
        start_seconds_max=600,
        database_url=url,
        checkout=checkout if service == BEFORE else None,
    ) as server:
        (worker,) = worker_ids(server.process_id)
        request = Requests(server.port).get(path_of(queries[_HTTP_MINOR], None))
        _ask(server, request)
        resident = _status_mib(worker, "VmRSS")
        # Linux sets the peak back to what is resident now.
        Path(f"/proc/{worker}/clear_refs").write_text("5")
        begin = processes_s([worker])
        lengths = {_ask(server, request) for _ in range(_HTTP_TIMES)}
        seconds = (processes_s([worker]) - begin) / _HTTP_TIMES
        peak = _status_mib(worker, "VmHWM") - resident
        yield Found(
            service=service,
            size=fleet.size,
            name=f"{kind} 1.{_HTTP_MINOR}",
            state="HTTP",
            seconds=seconds,
            bytes=max(lengths),
            peak_mib=peak,
        )


def _ask(server: RunningServer, request: bytes) -> int:
    """The length of the answer."""
    sample = Sample()
    timed(server, [asking(lambda: request, sample, 0.0)], Round(0.0, 0, 600.0))
    assert sample.answer_bytes, f"no answer: {sample.failures}"
    return sample.answer_bytes


def _status_mib(process: int, field: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"Linux tells {field} of every process")


def _python(checkout: Path) -> str:
    return sys.executable if checkout == _ROOT else str(checkout / ".venv" / "bin" / "python")


def table_of(results: Sequence[Found], sizes: Sequence[int]) -> Table:
    """For each question its cost at each size, and the exponent of its growth."""
    table = Table("question", "memory", "service", *(f"{n:,}: ms" for n in sizes))
    for column in ("ns a byte", "peak, MiB", "exponent"):
        table.add_column(column)
    rows: dict[tuple[str, str, str], list[Found]] = {}
    for found in results:
        rows.setdefault((found.name, found.state, found.service), []).append(found)
    for key, several in sorted(rows.items()):
        largest = several[-1]
        points = [(found.bytes, found.seconds) for found in several if found.seconds]
        table.add_row(
            *key,
            *(f"{found.seconds * 1e3:.2f}" for found in several),
            f"{largest.seconds / largest.bytes * 1e9:.2f}",
            f"{largest.peak_mib:.0f}",
            f"{exponent(points):.2f}" if len(points) > 1 else "",
        )
    return table


def different(results: Sequence[Found]) -> list[str]:
    """The answers of which two services gave other bytes."""
    digests: dict[str, set[str]] = {}
    for found in results:
        if found.digest:
            digests.setdefault(f"{found.name}, {found.size:,}", set()).add(found.digest)
    return [name for name, several in digests.items() if len(several) > 1]


@click.command()
@click.option(
    "--before",
    type=click.Path(exists=True, file_okay=False, resolve_path=True, path_type=Path),
    help="Also measure the berth of this checkout, which needs its own .venv.",
)
@click.option("--kind", "kinds", multiple=True, type=click.Choice(list(KINDS)))
@click.option("--hosts", "sizes", multiple=True, type=click.IntRange(min=1), help="Fleet size.")
@click.option("--seconds", default=1.0, show_default=True, help="For each question and state.")
@click.option("--http", is_flag=True, help="Also ask over HTTP.")
def main(
    before: Path | None,
    kinds: Sequence[str],
    sizes: Sequence[int],
    seconds: float,
    http: bool,
) -> None:
    """Measure candidates without a limit, and fail if two checkouts answer with other bytes."""
    services = {BERTH: _ROOT} if before is None else {BEFORE: before, BERTH: _ROOT}
    results: list[Found] = []
    console = Console(width=160, highlight=False)
    for kind in kinds or KINDS:
        for size in sorted(sizes or SIZES):
            fleet = KINDS[kind][0](size)
            with tempfile.TemporaryDirectory(prefix="berth-unlimited-") as name:
                for service, checkout in services.items():
                    home = Path(name) / service
                    home.mkdir()
                    url = f"sqlite:///{home}/berth.sqlite"
                    write_for(service, url, fleet, home, before=before)
                    results += in_process(service, kind, fleet, url, checkout, seconds)
                    if http:
                        results += over_http(service, kind, fleet, url, checkout, home)
            console.print(f"{fleet.name} is done")
    console.print(table_of(results, sorted(sizes or SIZES)))
    if names := different(results):
        raise SystemExit(f"Other bytes than before: {'; '.join(names)}")


if __name__ == "__main__":
    main()
