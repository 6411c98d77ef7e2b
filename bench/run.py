# SPDX-License-Identifier: Apache-2.0
"""Running stages: servers are started, loaded, and take turns in every case.

Whatever fails, a case or a whole stage, is a result too, and what comes after it is still measured.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from bench.bulk import write_fleet
from bench.case import AloneCase, Case, Stage
from bench.driver import TimedOut
from bench.fleet import Fleet
from bench.loading import digest, load
from bench.peer import PEER_RELEASE, peer_database, serve_peer
from bench.results import BEFORE, BERTH, ORIGINAL, Result, summarise
from bench.sample import Round, Sample, Samples, clock
from bench.server import RunningServer, berth_url, serve_berth
from bench.services import serve, write_for

_START_SECONDS_MAX: Final = 600.0
_LOADED_AT_ONCE: Final = 2

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How everything is measured."""

    peer: bool
    #: A checkout of another berth, with a `.venv` of its own, that takes part in everything.
    before: Path | None
    seconds: float
    rounds_count: int
    workers: int
    request_seconds_max: float
    #: Where loaded databases of the original are kept for the next run.
    cache: Path


class Served:
    """A server that can be started again on its own database."""

    def __init__(self, serve: Callable[[], AbstractContextManager[RunningServer]]) -> None:
        self._serve = serve
        self._running = ExitStack()
        self.server = self._running.enter_context(serve())
        #: Ladders on which it was given up.
        self.given_up: set[str] = set()

    def restart(self) -> None:
        """End it whatever it is doing, and start it again."""
        self.stop()
        self.server = self._running.enter_context(self._serve())

    def stop(self) -> None:
        """End it."""
        self._running.close()


@dataclass(slots=True)
class Measured:
    """The rounds of one case on one server."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    gave_up_after_s: float | None = None
    error: str | None = None

    def take(self, measure: Callable[[], Samples]) -> bool:
        """Run a round; whether another makes sense."""
        try:
            for what, sample in measure().items():
                self.samples.setdefault(what, []).append(sample)
        except TimedOut as given_up:
            self.gave_up_after_s = given_up.seconds
        # Whatever a server or a case does, the other results must not be lost.
        except Exception as error:  # noqa: BLE001
            self.error = f"{type(error).__name__}: {error}"
        return self.gave_up_after_s is None and self.error is None

    def results(self, stage: Stage, case: Case | AloneCase, server: str) -> Iterator[Result]:
        """A result for each thing measured, or one that says why there is none."""
        about = Result(
            scenario=case.scenario,
            fleet=stage.fleet.kind,
            size=stage.fleet.size,
            case=case.name,
            server=server,
            gave_up_after_s=self.gave_up_after_s,
            error=self.error,
        )
        if self.gave_up_after_s is not None or self.error is not None:
            yield about
            return
        for what, samples in self.samples.items():
            if any(
                sample.values or sample.conflicts_count or sample.failures for sample in samples
            ):
                yield summarise(about, what, samples)


def load_peers(planned: Sequence[Stage], settings: Settings, say: Say) -> None:
    """Load the original with every fleet that it will need and that no earlier run has left.

    It takes 10 milliseconds or more for a write and is loaded by one client, so two fleets are
    loaded at a time. What fails is tried again, and told of, in its stage.
    """
    fleets = [stage.fleet for stage in planned if not stage.in_bulk]
    with ThreadPoolExecutor(_LOADED_AT_ONCE) as pool:
        wait([pool.submit(_loaded_peer, fleet, settings, say) for fleet in fleets])


def run_stage(stage: Stage, settings: Settings, say: Say) -> Iterator[list[Result]]:
    """Measure everything of a stage; the results of each case as it is done."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        directory = Path(name)
        yield from _run_in(directory, stage, settings, say)


def _run_in(directory: Path, stage: Stage, settings: Settings, say: Say) -> Iterator[list[Result]]:
    if stage.in_bulk:
        start = clock()
        write_fleet(berth_url(directory), stage.fleet)
        say(f"{stage.fleet.name}: written in {clock() - start:.0f} s")
    if stage.cases or not stage.in_bulk:
        with _serving(directory, stage, settings, say) as servers:
            for case in stage.cases:
                yield run_case(case, stage, servers, settings)
    for alone in stage.alone:
        yield run_alone(alone, stage, directory, settings)


@contextmanager
def _serving(directory: Path, stage: Stage, settings: Settings, say: Say) -> Iterator[list[Served]]:
    """Servers with the fleet in them, berth first."""
    workers = stage.workers_count or settings.workers
    with ExitStack() as stack:

        def started(serve: Callable[[], AbstractContextManager[RunningServer]]) -> Served:
            served = Served(serve)
            stack.callback(served.stop)
            return served

        servers = [
            started(
                lambda: serve_berth(
                    directory, workers=workers, start_seconds_max=_START_SECONDS_MAX
                )
            )
        ]
        if not stage.in_bulk:
            load(servers[0].server, stage.fleet, say)
        if settings.peer and not stage.in_bulk:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-peer-")))
            shutil.copy(_loaded_peer(stage.fleet, settings, say), peer_database(home))
            servers.append(started(lambda: serve_peer(home, processes=workers)))
        if settings.before is not None:
            earlier = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-before-")))
            url = berth_url(earlier)
            write_for(BEFORE, url, stage.fleet, earlier, before=settings.before)
            serve_it = partial(
                serve, BEFORE, [url], earlier, workers=workers, before=settings.before
            )
            servers.append(started(serve_it))
        yield servers


def _loaded_peer(fleet: Fleet, settings: Settings, say: Say) -> Path:
    """A database of the original with a fleet, loaded through its API, now or the last time."""
    kept = settings.cache / f"original-{PEER_RELEASE}-{digest(fleet)}.sqlite"
    if kept.exists():
        say(f"original: {fleet.name} as it was loaded through its API, from {kept.name}")
        return kept
    with tempfile.TemporaryDirectory(prefix="berth-peer-") as name:
        home = Path(name)
        with serve_peer(home) as server:
            load(server, fleet, say)
        settings.cache.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(".unfinished")
        shutil.copy(peer_database(home), unfinished)
        unfinished.rename(kept)
    return kept


def run_case(
    case: Case, stage: Stage, servers: Sequence[Served], settings: Settings
) -> list[Result]:
    """Let the servers take turns: berth, the original, the original, berth.

    So what the machine does meanwhile, such as slowing down, favours none of them.
    """
    measured = {one.server.name: Measured() for one in servers if _is_asked(case, one)}
    going_on = [one for one in servers if one.server.name in measured]
    for number in range(settings.rounds_count):
        wanted = Round(settings.seconds, number, settings.request_seconds_max)
        for served in list(going_on if number % 2 == 0 else reversed(going_on)):
            of_server = measured[served.server.name]
            if not of_server.take(partial(case.measure, served.server, wanted)):
                going_on.remove(served)
            if of_server.gave_up_after_s is not None:
                served.given_up.add(case.ladder)
                # It may work on what nobody waits for any more, for minutes.
                served.restart()
    for served in servers:
        if case.ladder in served.given_up and served.server.name not in measured:
            seconds = settings.request_seconds_max
            measured[served.server.name] = Measured(gave_up_after_s=seconds)
    return [one for name, each in measured.items() for one in each.results(stage, case, name)]


def _is_asked(case: Case, served: Served) -> bool:
    if served.server.name == ORIGINAL and not case.for_peer:
        return False
    return not case.ladder or case.ladder not in served.given_up


def run_alone(case: AloneCase, stage: Stage, directory: Path, settings: Settings) -> list[Result]:
    measured = Measured()
    for number in range(settings.rounds_count if case.is_repeated else 1):
        wanted = Round(settings.seconds, number, settings.request_seconds_max)
        if not measured.take(partial(case.measure, directory, wanted)):
            break
    return list(measured.results(stage, case, BERTH))
