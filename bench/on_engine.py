# SPDX-License-Identifier: Apache-2.0
"""What is measured on a running engine, part by part.

Both services stand on the same server, each on a database of its own with the same hosts in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from bench.adoption import adopt
from bench.amid_writes import amid_writes_cases
from bench.case import AloneCase, Case, Stage
from bench.claim_floor import claim_floor
from bench.claims import claim_cases
from bench.clock_query import clock_cost
from bench.coherence import pair_case
from bench.engines import Engine
from bench.fleet import Fleet, flat
from bench.node_loss import lose_a_node
from bench.results import BEFORE, BERTH, ORIGINAL, Result
from bench.run import Served, Settings, run_alone, run_case
from bench.sample import Round, Sample, Samples
from bench.server import RunningServer
from bench.services import serve, write_for
from tests.servers.galera import Galera

#: Hosts of the fleet that everything but the adoption is measured on.
_HOSTS: Final = 1000

#: Transactions that a node refused or took back because another was faster.
_REFUSED: Final = ("wsrep_local_cert_failures", "wsrep_local_bf_aborts")


@dataclass(frozen=True, slots=True)
class OnEngine:
    """A running engine with a database for each service."""

    engine: Engine
    settings: Settings
    #: Empty; for configurations and logs.
    directory: Path
    #: The fleet that is taken over.
    adopted: Fleet
    #: Service -> its database's URL at each node.
    urls: Mapping[str, Sequence[str]]

    @property
    def stage(self) -> Stage:
        """The subject of the results."""
        return Stage(flat(_HOSTS), ())


def prepared(engine: Engine, settings: Settings, adopted: Fleet, directory: Path) -> OnEngine:
    """Create and fill a database for each measured service."""
    urls = {}
    wanted = {BERTH: True, ORIGINAL: settings.peer, BEFORE: settings.before is not None}
    for service in (name for name, is_wanted in wanted.items() if is_wanted):
        urls[service] = engine.create(service)
        home = directory / f"tables-of-{service}"
        home.mkdir()
        write_for(service, urls[service][0], flat(_HOSTS), home, before=settings.before)
    return OnEngine(engine, settings, directory, adopted, urls)


def _claims(on: OnEngine) -> Iterator[list[Result]]:
    """The claim loop and single claims, spread over all nodes."""
    workers = on.settings.workers if on.engine.cluster is None else 1
    cases = [_counted(case, on.engine.cluster) for case in claim_cases(_HOSTS)]
    yield from _run(on, "claims", cases, on.urls, workers=workers)


def _pairs(on: OnEngine) -> Iterator[list[Result]]:
    """How soon a worker sees another's writes, through another node if there is one."""
    urls = {service: (of_it[0], of_it[-1]) for service, of_it in on.urls.items()}
    cases = [*amid_writes_cases(on.engine.name), pair_case(on.engine.name)]
    yield from _run(on, "pairs", cases, urls, workers=1)


def _clock(on: OnEngine) -> Iterator[list[Result]]:
    """The query at the start of each of berth's reads."""

    def measure(directory: Path, wanted: Round) -> Samples:
        return clock_cost(on.urls[BERTH][0], wanted.seconds)

    yield _run_alone(on, AloneCase(on.engine.name, "ten candidates in the process", measure))


def _floor(on: OnEngine) -> Iterator[list[Result]]:
    """Single claims by berth's store, and the same writes through the bare driver."""

    def measure(directory: Path, wanted: Round) -> Samples:
        return claim_floor(on.urls[BERTH][0], wanted.seconds)

    yield _run_alone(on, AloneCase(on.engine.name, "a claim in the process", measure))


def _adoption(on: OnEngine) -> Iterator[list[Result]]:
    """Adopt a database of Placement."""

    def measure(directory: Path, wanted: Round) -> Samples:
        return adopt(on.engine.create("adopted")[0], on.adopted, directory)

    case = AloneCase(on.engine.name, "berth db upgrade", measure, is_repeated=False)
    yield _run_alone(replace(on), case, fleet=on.adopted)


def _loss(on: OnEngine) -> Iterator[list[Result]]:
    """A node of a cluster is killed, and comes back."""
    cluster = on.engine.cluster
    if cluster is None:
        return

    def measure(server: RunningServer, wanted: Round) -> Samples:
        return lose_a_node(cluster, server, wanted.number)

    case = Case(on.engine.name, "a node is killed", measure)
    yield from _run(on, "loss", [case], on.urls, workers=1)


PARTS: Final[Mapping[str, Callable[[OnEngine], Iterator[list[Result]]]]] = {
    "claims": _claims,
    "pairs": _pairs,
    "clock": _clock,
    "floor": _floor,
    "adoption": _adoption,
    "loss": _loss,
}


def _run(
    on: OnEngine,
    part: str,
    cases: Sequence[Case],
    urls: Mapping[str, Sequence[str]],
    *,
    workers: int,
) -> Iterator[list[Result]]:
    """Let the services take turns in each case."""
    with _serving(on, urls, on.directory / part, workers) as servers:
        for case in cases:
            case = replace(case, scenario=on.engine.name)
            yield run_case(case, on.stage, servers, on.settings)


@contextmanager
def _serving(
    on: OnEngine, urls: Mapping[str, Sequence[str]], directory: Path, workers: int
) -> Iterator[list[Served]]:
    with ExitStack() as stack:
        servers = []
        for service, of_it in urls.items():
            home = directory / service
            run = partial(serve, service, of_it, home, workers=workers, before=on.settings.before)
            servers.append(Served(run))
            stack.callback(servers[-1].stop)
        yield servers


def _run_alone(on: OnEngine, case: AloneCase, *, fleet: Fleet | None = None) -> list[Result]:
    """Measure berth while no service uses its database."""
    stage = on.stage if fleet is None else Stage(fleet, ())
    home = on.directory / case.name.replace(" ", "-")
    home.mkdir()
    return run_alone(case, stage, home, on.settings)


def _counted(case: Case, cluster: Galera | None) -> Case:
    """Run the case; in a cluster, also count the transactions that its nodes rejected."""
    if cluster is None:
        return case

    def measure(server: RunningServer, wanted: Round) -> Samples:
        before = _refused(cluster)
        samples = case.measure(server, wanted)
        refused = _refused(cluster) - before
        extra = {"refused by a node": Sample([refused], unit="transactions")} if refused else {}
        return {**samples, **extra}

    return replace(case, measure=measure)


def _refused(cluster: Galera) -> int:
    return sum(int(node.status(name) or 0) for node in cluster.nodes for name in _REFUSED)
