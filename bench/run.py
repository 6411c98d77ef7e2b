# SPDX-License-Identifier: Apache-2.0
"""Running stages: servers are started, loaded, and take turns in every case.

Whatever fails, a case or a whole stage, is a result too, and what comes after it is still measured.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

from bench.bulk import write_fleet
from bench.case import AloneCase, Case, Stage
from bench.driver import TimedOut
from bench.floor import serve_floor
from bench.peer import peer_database, serve_peer
from bench.results import BEFORE, BERTH, FLOOR, ORIGINAL, Result, summarise
from bench.sample import Round, Sample, Samples, clock
from bench.server import RunningServer, berth_url, serve_berth
from bench.services import serve, write_for

_START_SECONDS_MAX: Final = 600.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run."""

    peer: bool
    #: A checkout of another berth, with a `.venv` of its own, that takes part in everything.
    before: Path | None
    seconds: float
    rounds_count: int
    workers: int
    request_seconds_max: float
    #: The number of the first round: other new consumers than in other runs on the same database.
    first_round: int = 0


class Served:
    """A server that can be restarted on its own database."""

    def __init__(self, serve: Callable[[], AbstractContextManager[RunningServer]]) -> None:
        self._serve = serve
        self._running = ExitStack()
        self.server = self._running.enter_context(serve())
        #: Ladders on which it was given up.
        self.given_up: set[str] = set()

    def restart(self) -> None:
        """Stop the server whatever it is doing, and start it again."""
        self.stop()
        self.server = self._running.enter_context(self._serve())

    def stop(self) -> None:
        """Stop the server."""
        self._running.close()


@dataclass(slots=True)
class Measured:
    """The rounds of one case on one server."""

    samples: dict[str, list[Sample]] = field(default_factory=dict)
    gave_up_after_s: float | None = None
    error: str | None = None

    @property
    def answer_bytes(self) -> int:
        """The length of an answer, as far as there was one."""
        samples = (sample for of_what in self.samples.values() for sample in of_what)
        return max((sample.answer_bytes for sample in samples), default=0)

    def take(self, measure: Callable[[], Samples]) -> bool:
        """Run a round, and return whether to run another."""
        try:
            for quantity, sample in measure().items():
                self.samples.setdefault(quantity, []).append(sample)
        except TimedOut as given_up:
            self.gave_up_after_s = given_up.seconds
        # Whatever a server or a case does, the other results must not be lost.
        except Exception as error:  # noqa: BLE001
            self.error = f"{type(error).__name__}: {error}"
        return self.gave_up_after_s is None and self.error is None

    def results(self, stage: Stage, case: Case | AloneCase, server: str) -> Iterator[Result]:
        """A result for each quantity, or one that says why there are none."""
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
        for quantity, samples in self.samples.items():
            if any(
                sample.values or sample.conflicts_count or sample.failures for sample in samples
            ):
                yield summarise(about, quantity, samples)


def run_stage(stage: Stage, settings: Settings, say: Say) -> Iterator[list[Result]]:
    """Measure a stage, and yield the results of each case."""
    with tempfile.TemporaryDirectory(prefix="berth-bench-") as name:
        directory = Path(name)
        yield from _run_in(directory, stage, settings, say)


def _run_in(directory: Path, stage: Stage, settings: Settings, say: Say) -> Iterator[list[Result]]:
    start = clock()
    write_fleet(berth_url(directory), stage.fleet)
    say(f"{stage.fleet.name}: written in {clock() - start:.0f} s")
    if stage.cases:
        with _serving(directory, stage, settings) as servers:
            for case in stage.cases:
                yield run_case(case, stage, servers, settings)
    for alone in stage.alone:
        yield run_alone(alone, stage, directory, settings)


@contextmanager
def _serving(directory: Path, stage: Stage, settings: Settings) -> Iterator[list[Served]]:
    """Servers with the fleet loaded, berth first."""
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
        if settings.peer and stage.for_peer:
            home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-peer-")))
            write_for(ORIGINAL, f"sqlite:///{peer_database(home)}", stage.fleet, home)
            servers.append(started(lambda: serve_peer(home, processes=workers)))
        if settings.before is not None:
            earlier = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-before-")))
            url = berth_url(earlier)
            write_for(BEFORE, url, stage.fleet, earlier, before=settings.before)
            serve_it = partial(
                serve, BEFORE, [url], earlier, workers=workers, before=settings.before
            )
            servers.append(started(serve_it))
        if any(case.has_floor for case in stage.cases):
            floor = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-floor-")))
            servers.append(started(lambda: serve_floor(floor, workers=workers)))
        yield servers


def run_case(
    case: Case, stage: Stage, servers: Sequence[Served], settings: Settings
) -> list[Result]:
    """Let the servers take turns: berth, Placement, the floor, the floor, Placement, berth.

    So what the machine does meanwhile, such as slowing down, favours none of them.
    """
    measured = {served.server.name: Measured() for served in servers if _is_asked(case, served)}
    going_on = [served for served in servers if served.server.name in measured]
    for number in range(settings.first_round, settings.first_round + settings.rounds_count):
        wanted = Round(settings.seconds, number, settings.request_seconds_max)
        for served in list(going_on if number % 2 == 0 else reversed(going_on)):
            of_server = measured[served.server.name]
            if served.server.name == FLOOR:
                wanted = replace(wanted, answer_bytes=measured[BERTH].answer_bytes)
            if not of_server.take(partial(case.measure, served.server, wanted)):
                going_on.remove(served)
            if of_server.gave_up_after_s is not None:
                served.given_up.add(case.ladder)
                # It may work for minutes on requests whose clients have gone.
                served.restart()
    for served in servers:
        if case.ladder in served.given_up and served.server.name not in measured:
            seconds = settings.request_seconds_max
            measured[served.server.name] = Measured(gave_up_after_s=seconds)
    return [result for name, each in measured.items() for result in each.results(stage, case, name)]


def _is_asked(case: Case, served: Served) -> bool:
    if served.server.name == ORIGINAL and not case.for_peer:
        return False
    if served.server.name == FLOOR and not case.has_floor:
        return False
    return not case.ladder or case.ladder not in served.given_up


def run_alone(case: AloneCase, stage: Stage, directory: Path, settings: Settings) -> list[Result]:
    measured = Measured()
    for number in range(settings.rounds_count if case.is_repeated else 1):
        wanted = Round(settings.seconds, number, settings.request_seconds_max)
        if not measured.take(partial(case.measure, directory, wanted)):
            break
    return list(measured.results(stage, case, BERTH))
