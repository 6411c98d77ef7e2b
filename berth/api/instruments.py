# SPDX-License-Identifier: Apache-2.0
"""What is counted and measured: every instrument with its name, its labels and its help.

An application has one set. Where worker processes share a folder (PROMETHEUS_MULTIPROC_DIR),
prometheus-client keeps the values in files there, so that each of them can tell the sums of all.
The layers below do not know of this: they have an observer, and here is what observes them.

Instruments are looked up by their labels once, and kept: prometheus-client takes longer to find one
than to add to it. Every label has few values; what a caller could make up counts as `other`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values
from prometheus_client.metrics import MetricWrapperBase

from berth.config import METRICS_FOLDER, ConfigurationError

#: A request takes a tenth of a millisecond, or as long as a database lets it wait.
SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

#: Writes that share a commit (`berth.store.engine.group_commit.WRITES_MAX`).
GROUP_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)

#: Seconds between two times that a gauge is told of what changes with every request.
FOLLOW_S: Final = 0.05

#: Of a request whose microversion was not looked at.
NO_MICROVERSION: Final = "none"
OTHER: Final = "other"

_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))

#: What counts a request, and what takes its time.
_Told = tuple[Callable[[], None], Callable[[float], None]]

M = TypeVar("M", bound=MetricWrapperBase)


class Level:
    """A gauge that follows a number which may change many times in a millisecond.

    It is told of a zero at once, and of anything else when it has not been told for a while: so
    who reads it finds what was so a moment ago, and what rests at zero shows zero.

    Args:
        follow_s: 0 for a number that may rest at another, and changes seldom.
    """

    def __init__(self, gauge: Gauge, *, follow_s: float = FOLLOW_S) -> None:
        self._gauge = gauge
        self._follow_s = follow_s
        self._told = 0
        self._told_at = 0.0

    def follow(self, number: int) -> None:
        """The number has changed; calls must not overlap."""
        if number == self._told:
            return
        now = time.monotonic()
        if number and now - self._told_at < self._follow_s:
            return
        self._told, self._told_at = number, now
        self._gauge.set(number)


class Tally:
    """A counter of amounts that come many times in a millisecond: told of them now and then.

    What came last may wait for the next; it is told at the latest when this worker is scraped.
    """

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._lock = threading.Lock()
        self._untold = 0
        self._told_at = 0.0

    def add(self, amount: int) -> None:
        """Count an amount."""
        with self._lock:
            self._untold += amount
        if time.monotonic() - self._told_at >= FOLLOW_S:
            self.tell()

    def tell(self) -> None:
        """Tell what has not been told."""
        with self._lock:
            untold, self._untold = self._untold, 0
            self._told_at = time.monotonic()
        if untold:
            self._counter.inc(untold)


class LineInstruments:
    """Observes a line of the admission (`berth.api.admission.Observer`)."""

    def __init__(self, running: Gauge, waiting: Gauge, refused: Counter) -> None:
        self._running = Level(running)
        self._waiting = Level(waiting)
        self._refused = refused

    def changed(self, running: int, waiting: int) -> None:
        """See `Observer`."""
        self._running.follow(running)
        self._waiting.follow(waiting)

    def refused(self) -> None:
        """See `Observer`."""
        self._refused.inc()


class IndexInstruments:
    """Observes an index (`berth.index.index.Observer`)."""

    def __init__(self, make: Maker) -> None:
        refresh_seconds = make.labelled(
            Histogram,
            "index_refresh_seconds",
            "Time that it took the index to take over what others changed, or to load everything.",
            "extent",
            buckets=SECONDS,
        )
        self._changes = refresh_seconds("changes")
        self._everything = refresh_seconds("everything")
        self._refreshed_at = make.gauge(
            "index_refreshed_timestamp_seconds",
            "When the index of a worker last took over changes, or loaded everything.",
            multiprocess_mode="liveall",
        )
        self._failures = make.counter(
            "index_refresh_failures",
            "Times that the index could not be brought up to date, because of the database.",
        )

    def clock(self) -> float:
        """Seconds since some moment, never running backwards."""
        return time.perf_counter()

    def refreshed(self, seconds: float, *, wholly: bool) -> None:
        """See `Observer`."""
        (self._everything if wholly else self._changes).observe(seconds)
        self._refreshed_at.set_to_current_time()

    def failed(self) -> None:
        """See `Observer`."""
        self._failures.inc()


class DatabaseInstruments:
    """Observes a database (`berth.store.engine.database.Observer`).

    Args:
        pool_size: connections that the pool keeps.
    """

    def __init__(self, make: Maker, *, pool_size: int, pool_max: float) -> None:
        self._pool_size = pool_size
        self._connections = Level(
            make.gauge(
                "database_connections",
                "Connections of the pools, those in use included.",
                multiprocess_mode="livesum",
            ),
            follow_s=0.0,
        )
        self._in_use = Level(
            make.gauge(
                "database_connections_in_use",
                "Connections of the pools that are in use.",
                multiprocess_mode="livesum",
            )
        )
        self._overflow = Level(
            make.gauge(
                "database_connections_overflow",
                "Connections beyond those that the pools keep open.",
                multiprocess_mode="livesum",
            )
        )
        make.gauge(
            "database_connections_max",
            "Connections that the pools may have; one more waits for pool_timeout.",
            multiprocess_mode="livesum",
        ).set(pool_max)
        self._commit_writes = make.histogram(
            "commit_writes",
            "Writes that shared a commit.",
            buckets=GROUP_SIZES,
        )
        self._retries = make.labelled(
            Counter,
            "write_retries",
            "Units of work that were run again: the database was busy with others, others were "
            "faster, or the connection was lost.",
            "reason",
        )
        # There before the first of them: what appears with a 1 has not grown, to who looks.
        for reason in ("busy", "lost_race", "lost_connection"):
            self._retries(reason)
        self._foreign_writes = make.counter(
            "foreign_writes",
            "Times that a provider was found to have been written by another program.",
        )

    def committed(self, writes: int) -> None:
        """See `Observer`."""
        self._commit_writes.observe(writes)

    def retried(self, reason: str | None) -> None:
        """See `Observer`."""
        self._retries((reason or OTHER).replace(" ", "_")).inc()

    def found_foreign_write(self) -> None:
        """See `Observer`."""
        self._foreign_writes.inc()

    def pool_changed(self, connections: int, in_use: int) -> None:
        """See `Observer`."""
        self._connections.follow(connections)
        self._in_use.follow(in_use)
        self._overflow.follow(max(0, connections - self._pool_size))


class SearchInstruments:
    """What is told of searches for candidates."""

    def __init__(self, make: Maker) -> None:
        self.trees = Tally(
            make.counter(
                "candidates_trees_examined",
                "Provider trees that searches for candidates looked at.",
            )
        )
        self.returned = Tally(make.counter("candidates_returned", "Candidates in answers."))
        self.ended_early = make.labelled(
            Counter,
            "candidates_searches_ended_early",
            "Searches that ended before they had all that was asked for: their time was over, the "
            "answer was large enough, or the client had gone.",
            "reason",
        )
        for reason in ("time", "size", "gone"):
            self.ended_early(reason)

    def tell(self) -> None:
        """Tell what has not been told."""
        self.trees.tell()
        self.returned.tell()


class RequestInstruments:
    """What is told of requests."""

    def __init__(self, make: Maker, *, strategy: str) -> None:
        self._requests = make.labelled(
            Counter,
            "requests",
            "Requests answered.",
            "method",
            "route",
            "status",
            "microversion",
        )
        self._seconds = make.labelled(
            Histogram,
            "request_seconds",
            "Time from a request to its answer, waiting included.",
            "method",
            "route",
            buckets=SECONDS,
        )
        #: (method, route, status, minor) -> what is called. PERF: labels are found once.
        self._told: dict[tuple[str, str, str, int | None], _Told] = {}
        self._unauthenticated = make.labelled(
            Counter,
            "authentication_failures",
            "Requests refused because they did not say, or not prove, who calls.",
            "strategy",
        )(strategy)
        self.conflicts = make.labelled(
            Counter, "conflicts", "Requests refused with 409, by error code.", "code"
        )
        self.database_failures = make.counter(
            "database_failures", "Requests refused because the database could not be used."
        )

    def answered(
        self, method: str, route: str, status: str, minor: int | None, seconds: float
    ) -> None:
        """A request has been answered.

        Args:
            route: the template of its path.
            status: three digits.
            minor: of its microversion.
        """
        key = method, route, status, minor
        told = self._told.get(key) or self._found(key)
        count, take_time = told
        count()
        take_time(seconds)
        if status == "401":
            self._unauthenticated.inc()

    def _found(self, key: tuple[str, str, str, int | None]) -> _Told:
        method, route, status, minor = key
        if method not in _METHODS:
            method = OTHER
        microversion = NO_MICROVERSION if minor is None else f"1.{minor}"
        told = (
            self._requests(method, route, status, microversion).inc,
            self._seconds(method, route).observe,
        )
        if method != OTHER:
            self._told[key] = told
        return told


class Instruments:
    """All instruments of one application.

    Args:
        strategy: how callers are known.
        pool_size: connections that a pool keeps.
        pool_max: connections that it may have at a time.

    Raises:
        ConfigurationError: the folder that processes are to share is none.
    """

    def __init__(self, *, strategy: str, pool_size: int, pool_max: float) -> None:
        check_shared_folder()
        self.registry = CollectorRegistry()
        make = Maker(self.registry)
        self.requests = RequestInstruments(make, strategy=strategy)
        self.searches = SearchInstruments(make)
        self.index = IndexInstruments(make)
        self.database = DatabaseInstruments(make, pool_size=pool_size, pool_max=pool_max)
        self.claims = make.counter(
            "claims", "Consumers whose allocations were written, with something in them."
        )
        self.releases = make.counter("releases", "Consumers whose allocations were taken away.")
        running = make.labelled(
            Gauge,
            "admission_running",
            "Requests that run, those that wait for the database included.",
            "line",
            multiprocess_mode="livesum",
        )
        waiting = make.labelled(
            Gauge,
            "admission_waiting",
            "Requests that wait for their turn.",
            "line",
            multiprocess_mode="livesum",
        )
        refused = make.labelled(
            Counter, "admission_refused", "Requests told to come back later.", "line"
        )
        self.reads, self.writes, self.searches_line = (
            LineInstruments(running(line), waiting(line), refused(line))
            for line in ("reads", "writes", "searches")
        )


class Maker:
    """Makes instruments, named as all of them are, in one registry."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def counter(self, name: str, text: str) -> Counter:
        """A counter without labels."""
        return Counter(f"berth_{name}", text, registry=self._registry)

    def histogram(self, name: str, text: str, *, buckets: Iterable[float]) -> Histogram:
        """A histogram without labels."""
        return Histogram(f"berth_{name}", text, registry=self._registry, buckets=tuple(buckets))

    def gauge(self, name: str, text: str, *, multiprocess_mode: GaugeMode) -> Gauge:
        """A gauge without labels."""
        return Gauge(
            f"berth_{name}", text, registry=self._registry, multiprocess_mode=multiprocess_mode
        )

    def labelled(
        self, kind: type[M], name: str, text: str, *labels: str, **options: object
    ) -> Callable[..., M]:
        """Instruments of one name, each made when its labels are first asked for, and kept."""
        parent = kind(f"berth_{name}", text, labels, registry=self._registry, **options)  # type: ignore[arg-type]  # each kind has options of its own
        known: dict[tuple[str, ...], M] = {}

        def of(*label_values: str) -> M:
            try:
                return known[label_values]
            except KeyError:
                child = known[label_values] = parent.labels(*label_values)
                return child

        return of


GaugeMode = Literal["liveall", "livesum"]


def shared_folder() -> str | None:
    """The folder in which this process shares what it counts with others; None: it does not."""
    if values.ValueClass._multiprocess:
        return os.environ[METRICS_FOLDER]
    return None


def check_shared_folder() -> None:
    """See to it that what is counted can be shared, if it is to be.

    Raises:
        ConfigurationError: it cannot.
    """
    folder = shared_folder()
    if folder is not None and not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise ConfigurationError(
            f"{METRICS_FOLDER} is {folder!r}, which is no folder that can be written: create it, "
            f"and empty it before each start"
        )
