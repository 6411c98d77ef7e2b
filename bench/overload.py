# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.overload`: what is left of the rate when ten times as many clients ask.

The clients of the first figure keep both workers busy; those of the second are ten times as many.
All of them ask again at once, whatever they are told, which is the worst that clients do. Goodput
counts what was done; 503 is what the service said to the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import click

from bench.bulk import write_fleet
from bench.claims import claim_on, new_consumer
from bench.driver import Script, drive
from bench.flat import FILTERED, path_of
from bench.fleet import CLAIM, flat, host_uuid
from bench.http1 import Requests
from bench.sample import Sample, clock
from bench.server import RunningServer, berth_url, serve_berth

_HOSTS = 1000
_PEAK_CLIENTS = 64
_OVERLOAD = 10
#: Until the service is as busy as it will be: its threads are started as they are needed.
_WARM_UP_SECONDS = 2.0
_PROJECT = "bench-overload"

#: Makes the next request of a client.
Ask = Callable[[Requests, random.Random], bytes]


def _candidates(requests: Requests, rng: random.Random) -> bytes:
    return requests.get(path_of(FILTERED, 10))


def _claim(requests: Requests, rng: random.Random) -> bytes:
    host = host_uuid(rng.randrange(_HOSTS))
    return claim_on(requests, host, CLAIM, new_consumer(rng), _PROJECT)


def _mixed(requests: Requests, rng: random.Random) -> bytes:
    return (_claim if rng.random() < 0.1 else _candidates)(requests, rng)


_KINDS: dict[str, Ask] = {
    "candidates": _candidates,
    "claims": _claim,
    "90 % candidates, 10 % claims": _mixed,
}


@dataclass(frozen=True, slots=True)
class _Rate:
    """One round: requests done and rejected per second; latency (median, p99)."""

    done: float
    refused: float
    median_ms: float
    p99_ms: float


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Rounds of each; medians are shown.")
@click.option("--seconds", default=5.0, show_default=True, help="Length of a round.")
@click.option("--clients", default=_PEAK_CLIENTS, show_default=True, help="Clients at the peak.")
@click.option("--workers", default=2, show_default=True, help="Worker processes.")
def main(rounds: int, seconds: float, clients: int, workers: int) -> None:
    """Measure the goodput of berth at its peak, and under ten times the load."""
    with TemporaryDirectory(prefix="berth-bench-") as name:
        directory = Path(name)
        write_fleet(berth_url(directory), flat(_HOSTS))
        for kind, ask in _KINDS.items():
            with serve_berth(directory, workers=workers) as server:
                pairs = [
                    (
                        _measure(server, ask, clients, seconds),
                        _measure(server, ask, clients * _OVERLOAD, seconds),
                    )
                    for _ in range(rounds)
                ]
            peak, overload = (
                sorted(side, key=lambda rate: rate.done) for side in zip(*pairs, strict=True)
            )
            click.echo(f"{kind}, {workers} workers, medians of {rounds} rounds of {seconds:g} s")
            click.echo(_line(clients, peak[rounds // 2]))
            click.echo(_line(clients * _OVERLOAD, overload[rounds // 2]))
            ratio = median(more.done / few.done for few, more in pairs)
            click.echo(f"  goodput under overload / at the peak: {ratio:.2f}")


def _measure(server: RunningServer, ask: Ask, clients: int, seconds: float) -> _Rate:
    samples = [Sample() for _ in range(clients)]
    start = clock() + _WARM_UP_SECONDS
    requests = Requests(server.port)
    drive(server, [_client(requests, ask, sample, start, start + seconds) for sample in samples])
    times = sorted(value for sample in samples for value in sample.values)
    statuses = {status for sample in samples for status in sample.failures}
    assert statuses <= {503}, f"neither done nor refused, but {sorted(statuses - {503})}"
    return _Rate(
        done=len(times) / seconds,
        refused=sum(sample.failures[503] for sample in samples) / seconds,
        median_ms=1000 * times[len(times) // 2],
        p99_ms=1000 * times[len(times) * 99 // 100],
    )


def _client(requests: Requests, ask: Ask, sample: Sample, start: float, end: float) -> Script:
    """Repeat a request; count the responses between start and end."""
    rng = random.Random()
    while (sent := clock()) < end:
        answer = yield ask(requests, rng)
        if start <= clock() < end:
            sample.take(answer, clock() - sent)


def _line(clients: int, rate: _Rate) -> str:
    return (
        f"  {clients:5} clients: {rate.done:7.0f} done/s (median {rate.median_ms:.1f} ms, "
        f"p99 {rate.p99_ms:.1f} ms), {rate.refused:.0f} refused/s"
    )


if __name__ == "__main__":
    main()
