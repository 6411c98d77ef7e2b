# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.browser`: the operator's page in a real browser, on fleets of several sizes.

Everything that counts time or draws is measured in the page itself, by a script that runs before
the page's own. The browser draws without a graphics card, on the same processors as the service.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, NamedTuple

import click
from rich.console import Console
from rich.table import Table

from bench import fleet
from bench.bulk import write_fleet
from bench.claims import claim_on, new_consumer
from bench.client import Client, UnexpectedStatus
from bench.fleet import CLAIM, aggregate_uuid, host_uuid
from bench.memory import memory_mib
from bench.processor import processes_of
from bench.results import quantile
from bench.server import RunningServer, berth_url, serve_berth
from tests.page.browser import Browser, browsing

SIZES: Final = (2_000, 10_000, 100_000)

_SECONDS_MAX: Final = 120.0
_LOOK_S: Final = 0.02
_OPENINGS: Final = 3
_FRAMES: Final = 120
_CLAIMS: Final = 20
#: Longer than the page waits between two repaints.
_BETWEEN_CLAIMS_S: Final = 0.6
#: Panning while the fleet changes: for so long, with so many claims or releases a second.
_CHURN_S: Final = 8.0
_CHANGES_PER_SECOND: Final = 10
#: Records when tiles are drawn, and how long the page works for a frame.
_RECORDING: Final = """
    const record = window.berthBench = { firstDraw: 0, lastDraw: 0, frames: [], work: [] };
    const context = CanvasRenderingContext2D.prototype;
    for (const name of ["drawImage", "fillRect"]) {
        const draw = context[name];
        context[name] = function (...all) {
            if (this.canvas.isConnected) {
                record.lastDraw = Date.now();
                record.firstDraw ||= performance.now();
            }
            return draw.apply(this, all);
        };
    }
"""

#: Pans to and fro by the keyboard, a step for each frame: so many frames, or for so long.
_PANNING: Final = """
    const [count, seconds, done] = arguments;
    const end = performance.now() + 1000 * seconds;
    const canvas = document.querySelector("canvas.map");
    const record = Object.assign(window.berthBench, { frames: [], work: [] });
    let number = 0;
    let before = 0;
    function step(now) {
        if (before) record.frames.push(now - before);
        before = now;
        if (number++ === count || now > end) return done([record.frames, record.work]);
        const key = number % 40 < 20 ? "ArrowLeft" : "ArrowRight";
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key }));
        // The page's own callback for this frame was asked for first, and so comes first.
        requestAnimationFrame((next) => {
            record.work.push(performance.now() - next);
            step(next);
        });
    }
    requestAnimationFrame(step);
"""


class Figures(NamedTuple):
    """What was measured at one size.

    Attributes:
        first_paint: milliseconds from the request for the page to the first tile; the median.
        frame, frame_p95: milliseconds from one frame to the next while the map is panned.
        work_p95: milliseconds in which the page's scripts work for one of these frames.
        churn_p95, churn_most: from one frame to the next while the map is panned and the fleet
            changes ten times a second.
        seen, seen_most: milliseconds from a claim's request to the repaint; median and longest.
        heap_mib: JavaScript objects after a collection.
        tab_mib: memory of the tab's process, its share of what it has in common with others.
    """

    hosts: int
    first_paint: float
    frame: float
    frame_p95: float
    work_p95: float
    churn_p95: float
    churn_most: float
    seen: float
    seen_most: float
    heap_mib: float
    tab_mib: float


_HEADS: Final = (
    *("hosts", "first paint ms", "frame ms", "frame p95", "work p95", "churn p95", "longest"),
    *("change seen ms", "longest", "heap MiB", "tab MiB"),
)


@click.command()
@click.option(
    "--hosts",
    "sizes",
    multiple=True,
    type=click.IntRange(min=100),
    help="Number of hosts; may be repeated.  [default: 2,000, 10,000 and 100,000]",
)
def main(sizes: tuple[int, ...]) -> None:
    """Measure the operator's page in Chromium, and print a table."""
    table = Table(*_HEADS, box=None)
    for size in sizes or SIZES:
        figures = _measured(size)
        table.add_row(f"{figures.hosts:,}", *(f"{figure:,.1f}" for figure in figures[1:]))
    Console(width=140, highlight=False).print(table)


def _measured(size: int) -> Figures:
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        directory = Path(name)
        write_fleet(berth_url(directory), fleet.flat(size))
        with (
            serve_berth(directory, start_seconds_max=600) as server,
            browsing(directory / "browser") as browser,
        ):
            _label(server)
            browser.driver.set_script_timeout(_SECONDS_MAX)
            browser.driver.execute_cdp_cmd(
                "Page.addScriptToEvaluateOnNewDocument", {"source": _RECORDING}
            )
            paints = [_first_paint(browser, server) for _ in range(_OPENINGS)]
            frames, work = _panned(browser, _FRAMES, _SECONDS_MAX)
            with _churn(server, size):
                churned, _ = _panned(browser, -1, _CHURN_S)
            seen = _changes_seen(browser, server, size)
            return Figures(
                size,
                statistics.median(paints),
                statistics.median(frames),
                quantile(sorted(frames), 0.95) or 0.0,
                quantile(sorted(work), 0.95) or 0.0,
                quantile(sorted(churned), 0.95) or 0.0,
                max(churned),
                statistics.median(seen),
                max(seen),
                _heap_mib(browser),
                _tab_mib(browser),
            )


def _label(server: RunningServer) -> None:
    """Give the fleet three zones, by which the page groups its hosts."""
    with Client(server) as client:
        for number in range(3):
            path = f"/berth/v1/aggregates/{aggregate_uuid(number)}"
            client.demand("PUT", path, {"labels": {"zone": f"z{number + 1}"}})


def _first_paint(browser: Browser, server: RunningServer) -> float:
    browser.open(server.url)
    return _until(lambda: _recorded(browser, "firstDraw"), "the first tile is drawn")


def _panned(browser: Browser, frames: int, seconds: float) -> tuple[list[float], list[float]]:
    read: list[list[float]] = browser.driver.execute_async_script(_PANNING, frames, seconds)
    return read[0], read[1]


@contextmanager
def _churn(server: RunningServer, size: int) -> Iterator[None]:
    """Let the fleet change until the end of the block: claims, each released by the next change."""
    is_over = Event()
    refused: list[UnexpectedStatus] = []

    def change() -> None:
        rng = random.Random("churn")
        with Client(server) as client:
            for number in count():
                consumer = new_consumer(rng)
                host = host_uuid(number * 37 % size)
                claim = claim_on(client.requests, host, CLAIM, consumer, "bench-churn")
                for request in (claim, client.requests.of("DELETE", f"/allocations/{consumer}")):
                    answer = client.exchange(request)
                    if answer.status != 204:
                        refused.append(UnexpectedStatus("-", "-", answer.status, answer.body))
                    if is_over.wait(1 / _CHANGES_PER_SECOND) or refused:
                        return

    changing = Thread(target=change)
    changing.start()
    try:
        yield
    finally:
        is_over.set()
        changing.join()
    if refused:
        raise refused[0]


def _changes_seen(browser: Browser, server: RunningServer, size: int) -> list[float]:
    """Milliseconds from the request of a claim to the repaint that shows it."""
    rng = random.Random("changes")
    seen = []
    with Client(server) as client:
        for number in range(_CLAIMS):
            time.sleep(_BETWEEN_CLAIMS_S)
            host = host_uuid(number * (size // _CLAIMS))
            claim = claim_on(client.requests, host, CLAIM, new_consumer(rng), "bench-page")
            sent = time.time() * 1000
            answer = client.exchange(claim)
            if answer.status != 204:
                raise UnexpectedStatus("PUT", "/allocations", answer.status, answer.body)
            drawn = _until(_later(browser, sent), "the claim is drawn")
            seen.append(drawn - sent)
    return seen


def _later(browser: Browser, moment: float) -> Callable[[], float]:
    """When something was drawn after a moment; 0 if nothing was yet."""

    def drawn() -> float:
        last = _recorded(browser, "lastDraw")
        return last if last > moment else 0.0

    return drawn


def _recorded(browser: Browser, name: str) -> float:
    value: float = browser.script("return window.berthBench[arguments[0]]", name)
    return float(value)


def _heap_mib(browser: Browser) -> float:
    browser.driver.execute_cdp_cmd("HeapProfiler.collectGarbage", {})
    browser.driver.execute_cdp_cmd("Performance.enable", {})
    metrics: dict[str, Any] = browser.driver.execute_cdp_cmd("Performance.getMetrics", {})
    values = {metric["name"]: metric["value"] for metric in metrics["metrics"]}
    return float(values["JSHeapUsedSize"]) / 2**20


def _tab_mib(browser: Browser) -> float:
    """The largest of the browser's processes for pages."""
    return max(memory_mib(process, "Pss") for process in _renderers(browser))


def _renderers(browser: Browser) -> Iterator[int]:
    driver = browser.driver.service.process.pid
    for process in processes_of(driver):
        if b"--type=renderer" in Path(f"/proc/{process}/cmdline").read_bytes():
            yield process


def _until(read: Callable[[], float], what: str) -> float:
    end = time.monotonic() + _SECONDS_MAX
    while time.monotonic() < end:
        if value := read():
            return value
        time.sleep(_LOOK_S)
    raise TimeoutError(f"never: {what}")


if __name__ == "__main__":
    main()
