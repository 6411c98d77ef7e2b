# SPDX-License-Identifier: Apache-2.0
"""The metrics: every instrument with its name, its labels and its help.

An application has one set. If worker processes share a folder (PROMETHEUS_MULTIPROC_DIR),
prometheus-client keeps the values in files there, so that each worker can report the sums of all.
The layers below do not know this module: they have observers, which are implemented here.

Instruments are looked up by their labels once and then kept: for prometheus-client a lookup takes
longer than an increment. Every label has few values; arbitrary ones from callers count as `other`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, values

from berth.config import METRICS_FOLDER, ConfigurationError
from berth.edge import admission, audit_log
from berth.edge.fault_logs import FaultyRowLog, OutageLog
from berth.edge.instrument_maker import Maker
from berth.edge.readiness import Writability
from berth.index import index
from berth.model.errors import Unavailable
from berth.store.engine import database

#: A request takes from a tenth of a millisecond to as long as the database makes it wait.
SECONDS: Final = (
    *(0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05),
    *(0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

#: Writes that share a commit (`berth.store.engine.group_commit.WRITES_MAX`).
GROUP_SIZES: Final = (1, 2, 4, 8, 16, 32, 64)

#: Seconds between two updates of a metric that changes with every request.
FOLLOW_S: Final = 0.05

#: Requests that are added to the instruments at a time, and the seconds between two times while
#: other processes report them. What they report may be a second old
#: (`berth.edge.exposition.REUSED_S`).
PENDING_MAX: Final = 1024
PENDING_S: Final = 0.25

#: The label of a request whose microversion was not parsed.
NO_MICROVERSION: Final = "none"
OTHER: Final = "other"

_METHODS: Final = frozenset(("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"))

#: The method, route, status and minor of the microversion of a request.
_Key = tuple[str, str, str, int | None]
#: What counts the requests of one label set, and what takes their durations.
_OfRequests = tuple[Counter, Histogram]

T = TypeVar("T")


class ThrottledGauge:
    """A gauge for a number that may change many times in a millisecond.

    A zero is set at once, other values only some time after the last update: so a reader sees a
    recent value, and an idle gauge shows zero.

    Args:
        follow_s: seconds between updates; 0 for a number that changes seldom and may idle above 0.
    """

    def __init__(self, gauge: Gauge, *, follow_s: float = FOLLOW_S) -> None:
        self._gauge = gauge
        self._follow_s = follow_s
        #: The number that a reader sees.
        self.shown = 0
        self._shown_at = 0.0

    def follow(self, number: int) -> None:
        """Note the current number; calls must not overlap."""
        if number == self.shown:
            return
        now = time.monotonic()
        if number and now - self._shown_at < self._follow_s:
            return
        self.shown, self._shown_at = number, now
        self._gauge.set(number)


class Buffer:
    """Numbers that are added to an instrument together: one addition takes a microsecond.

    `RequestInstruments` flushes it a second after a request, at most.

    Args:
        add_all: adds them.
    """

    def __init__(self, add_all: Callable[[list[float]], None]) -> None:
        self._add_all = add_all
        #: Appending is atomic, so it needs no lock.
        self._pending: deque[float] = deque()
        self.add: Final = self._pending.append

    def flush(self) -> None:
        """Add them."""
        if numbers := _taken(self._pending):
            self._add_all(numbers)


def _taken(pending: deque[T]) -> list[T]:
    """What is pending now, which others may take too; what is appended meanwhile is left."""
    taken: list[T] = []
    with suppress(IndexError):
        for _ in range(len(pending)):
            taken.append(pending.popleft())
    return taken


def _counting(counter: Counter) -> Buffer:
    return Buffer(lambda amounts: counter.inc(sum(amounts)))


class LineInstruments(admission.Observer):
    """Observes a queue of admission control (`berth.edge.admission.Observer`)."""

    def __init__(self, running: Gauge, waiting: Gauge, refused: Counter) -> None:
        self._running = ThrottledGauge(running)
        self._waiting = ThrottledGauge(waiting)
        self._refused = refused

    def changed(self, running: int, waiting: int) -> None:
        """See `Observer`."""
        # PERF bench.fixed_cost: each request comes here twice, and nearly none has to wait.
        if running != self._running.shown:
            self._running.follow(running)
        if waiting != self._waiting.shown:
            self._waiting.follow(waiting)

    def refused(self) -> None:
        """See `Observer`."""
        self._refused.inc()


class IndexInstruments(index.Observer):
    """Observes an index."""

    def __init__(self, make: Maker) -> None:
        refresh_seconds = make.labelled(
            partial(Histogram, buckets=SECONDS),
            "index_refresh_seconds",
            "Time that the index took to apply the changes of others, or to load everything.",
            "extent",
        )
        self._changes = refresh_seconds("changes")
        self._everything = refresh_seconds("everything")
        self._refreshed_at = make.gauge(
            "index_refreshed_timestamp_seconds",
            "When the index of a worker last applied changes, or loaded everything.",
            multiprocess_mode="liveall",
        )
        self._failures = make.counter(
            "index_refresh_failures",
            "Times that the index could not be refreshed because of the database.",
        )
        self._faulty_rows = make.gauge(
            "index_faulty_rows",
            "Rows that the index leaves out, because no tree can have them.",
            multiprocess_mode="liveall",
        )
        self._faulty_row_log = FaultyRowLog()

    def clock(self) -> float:
        """Monotonic seconds."""
        return time.perf_counter()

    def refreshed(self, seconds: float, *, wholly: bool) -> None:
        """See `Observer`."""
        (self._everything if wholly else self._changes).observe(seconds)
        self._refreshed_at.set_to_current_time()

    def failed(self) -> None:
        """See `Observer`."""
        self._failures.inc()

    def left_out(self, sentences: Collection[str]) -> None:
        """See `Observer`."""
        self._faulty_rows.set(len(sentences))
        self._faulty_row_log.note(sentences)


class DatabaseInstruments(database.Observer):
    """Observes a database.

    Args:
        pool_size: connections that the pool keeps.
    """

    def __init__(self, make: Maker, *, pool_size: int, pool_max: float) -> None:
        self.writability = Writability()
        self._pool_size = pool_size
        self._connections = ThrottledGauge(
            make.gauge(
                "database_connections",
                "Connections of the pools, including those in use.",
                multiprocess_mode="livesum",
            ),
            follow_s=0.0,
        )
        self._in_use = ThrottledGauge(
            make.gauge(
                "database_connections_in_use",
                "Connections of the pools that are in use.",
                multiprocess_mode="livesum",
            )
        )
        self._overflow = ThrottledGauge(
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
        sizes = make.histogram(
            "commit_writes",
            "Writes that shared a commit.",
            buckets=GROUP_SIZES,
        )
        self._commit_writes = Buffer(partial(observe_all, sizes))
        self.flush: Final = self._commit_writes.flush
        self._retries = make.labelled(
            Counter,
            "write_retries",
            "Units of work that were run again: the database was busy, another write was faster, "
            "or the connection was lost.",
            "reason",
        )
        # Created in advance: a series that first appears with a 1 shows no increase.
        for reason in ("busy", "lost_race", "lost_connection"):
            self._retries(reason)
        self._foreign_writes = make.counter(
            "foreign_writes",
            "Times that a provider was found to have been written by another program.",
        )
        self._leases_expired = make.counter(
            "leases_expired", "Consumers that were released because their leases had expired."
        )

    def committed(self, writes: int) -> None:
        """See `Observer`."""
        self._commit_writes.add(writes)
        self.writability.committed()

    def retried(self, reason: str | None) -> None:
        """See `Observer`."""
        self._retries((reason or OTHER).replace(" ", "_")).inc()

    def found_foreign_write(self) -> None:
        """See `Observer`."""
        self._foreign_writes.inc()

    def expired(self, consumers: int) -> None:
        """See `Observer`."""
        self._leases_expired.inc(consumers)

    def pool_changed(self, connections: int, in_use: int) -> None:
        """See `Observer`."""
        self._connections.follow(connections)
        self._in_use.follow(in_use)
        self._overflow.follow(max(0, connections - self._pool_size))


class ApiInstruments:
    """Observes the API (`berth.api.request.Observer`).

    Args:
        searches: the instruments of the searches' queue.
        writability: learns of each failure of the database.
    """

    def __init__(self, make: Maker, *, searches: LineInstruments, writability: Writability) -> None:
        self._searches = searches
        self._writability = writability
        self._outages = OutageLog()
        self._claims = _counting(make.counter("claims", "Consumers that were given allocations."))
        self._releases = _counting(
            make.counter("releases", "Consumers whose allocations were removed.")
        )
        self._conflicts = make.labelled(
            Counter, "conflicts", "Requests refused with 409, by error code.", "code"
        )
        self._database_failures = make.counter(
            "database_failures", "Requests refused because the database could not be used."
        )
        self._trees = _counting(
            make.counter(
                "candidates_trees_examined",
                "Provider trees that searches for candidates examined.",
            )
        )
        self._returned = _counting(make.counter("candidates_returned", "Candidates in answers."))
        self._ended_early = make.labelled(
            Counter,
            "candidates_searches_ended_early",
            "Searches that ended before they were complete: they reached the limit of time, size "
            "or memory, or the client had disconnected.",
            "reason",
        )
        for reason in ("time", "size", "memory", "gone"):
            self._ended_early(reason)

    def flush(self) -> None:
        """Bring the counters up to date."""
        for buffer in (self._claims, self._releases, self._trees, self._returned):
            buffer.flush()

    def claimed(self, consumers: int) -> None:
        """See `Observer`."""
        self._claims.add(consumers)

    def released(self, consumers: int) -> None:
        """See `Observer`."""
        self._releases.add(consumers)

    def searched(self, *, trees: int, candidates: int, ended: str | None) -> None:
        """See `Observer`."""
        self._trees.add(trees)
        self._returned.add(candidates)
        if ended:
            self._ended_early(ended).inc()

    def search_refused(self) -> None:
        """See `Observer`."""
        self._searches.refused()

    def conflicted(self, code: str) -> None:
        """See `Observer`."""
        self._conflicts(code).inc()

    def database_failed(self, error: Unavailable, request_id: str | None) -> None:
        """See `Observer`."""
        self._database_failures.inc()
        self._outages.note(error, request_id)
        self._writability.failed(error)


class AuditLogInstruments(audit_log.Observer):
    """Observes an audit log."""

    def __init__(self, make: Maker) -> None:
        self._written = make.counter("audit_log_lines", "Lines written to the audit log.")
        self._lost = make.counter(
            "audit_log_lost", "Lines of the audit log that could not be written."
        )

    def line_written(self) -> None:
        """See `Observer`."""
        self._written.inc()

    def line_lost(self) -> None:
        """See `Observer`."""
        self._lost.inc()


class RequestInstruments:
    """Counts and times requests.

    Attributes:
        others: bring other instruments up to date, whenever this brings its own.
    """

    def __init__(self, make: Maker, *, strategy: str) -> None:
        self.others: tuple[Callable[[], None], ...] = ()
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
            partial(Histogram, buckets=SECONDS),
            "request_seconds",
            "Time from a request to its answer, including waiting.",
            "method",
            "route",
        )
        #: (method, route, status, minor) -> the instruments. PERF: one lookup per label set.
        self._instruments: dict[_Key, _OfRequests] = {}
        self._unauthenticated = make.labelled(
            Counter,
            "authentication_failures",
            "Requests that failed authentication.",
            "strategy",
        )(strategy)
        #: What is not yet added to the instruments. PERF bench.fixed_cost: an addition takes a
        #: microsecond, and a request needs three. Appending is atomic, so it needs no lock.
        self._pending: deque[tuple[_OfRequests, float]] = deque()
        self._flushed_at = 0.0
        #: Whether a thread will flush.
        self._is_due = False
        #: Whether other processes report what this one counts.
        self._is_shared = shared_folder() is not None
        if self._is_shared:
            atexit.register(self.flush)

    def answered(
        self, method: str, route: str, status: str, minor: int | None, seconds: float
    ) -> None:
        """Record that a request was answered.

        Args:
            route: the template of its path.
            status: three digits.
            minor: the minor number of its microversion.
        """
        key = method, route, status, minor
        self._pending.append((self._instruments.get(key) or self._make_instruments(key), seconds))
        if self._is_shared and not self._is_due:
            self._flush_soon()
        elif len(self._pending) >= PENDING_MAX:
            self.flush()
        if status == "401":
            self._unauthenticated.inc()

    def flush(self) -> None:
        """Bring the instruments up to date."""
        self._is_due = False
        self._flushed_at = time.monotonic()
        durations: dict[_OfRequests, list[float]] = defaultdict(list)
        for instruments, seconds in _taken(self._pending):
            durations[instruments].append(seconds)
        for (count, seconds_of), all_seconds in durations.items():
            count.inc(len(all_seconds))
            observe_all(seconds_of, all_seconds)
        for flush in self.others:
            flush()

    def _flush_soon(self) -> None:
        """Flush: now, or in a thread soon after the last time."""
        if time.monotonic() - self._flushed_at < PENDING_S:
            timer = threading.Timer(PENDING_S, self.flush)
            timer.daemon = True
            self._is_due = True
            with suppress(RuntimeError):  # no thread can be started
                timer.start()
                return
        self.flush()

    def _make_instruments(self, key: _Key) -> _OfRequests:
        method, route, status, minor = key
        if method not in _METHODS:
            method = OTHER
        microversion = NO_MICROVERSION if minor is None else f"1.{minor}"
        made = self._requests(method, route, status, microversion), self._seconds(method, route)
        if method != OTHER:
            self._instruments[key] = made
        return made


def observe_all(histogram: Histogram, values: Iterable[float]) -> None:
    """Add many values to a histogram without labels, or to a child of one with labels.

    prometheus-client adds one value at a time, to its sum and to a bucket.
    """
    counts = [0] * len(histogram._upper_bounds)
    total = 0.0
    for value in values:
        counts[bisect_left(histogram._upper_bounds, value)] += 1
        total += value
    histogram._sum.inc(total)
    for bucket, count in zip(histogram._buckets, counts, strict=True):
        if count:
            bucket.inc(count)


class Instruments:
    """All instruments of one application.

    Args:
        strategy: the authentication strategy.
        pool_size: connections that a pool keeps.
        pool_max: connections that a pool may have at a time.

    Raises:
        ConfigurationError: the shared folder is not a writable directory.
    """

    def __init__(self, *, strategy: str, pool_size: int, pool_max: float) -> None:
        check_shared_folder()
        self.registry = CollectorRegistry()
        make = Maker(self.registry)
        self.requests = RequestInstruments(make, strategy=strategy)
        self.index = IndexInstruments(make)
        self.database = DatabaseInstruments(make, pool_size=pool_size, pool_max=pool_max)
        running = make.labelled(
            partial(Gauge, multiprocess_mode="livesum"),
            "admission_running",
            "Requests that run, including those that wait for the database.",
            "line",
        )
        waiting = make.labelled(
            partial(Gauge, multiprocess_mode="livesum"),
            "admission_waiting",
            "Requests that wait for their turn.",
            "line",
        )
        refused = make.labelled(
            Counter,
            "admission_refused",
            "Requests rejected because the server is overloaded.",
            "line",
        )
        self.reads, self.writes, self.searches_line, self.long_searches = (
            LineInstruments(running(line), waiting(line), refused(line))
            for line in ("reads", "writes", "searches", "long_searches")
        )
        self.api = ApiInstruments(
            make, searches=self.searches_line, writability=self.database.writability
        )
        self.requests.others = (self.api.flush, self.database.flush)
        #: Takes the number of requests that wait for changes.
        self.watching: Callable[[float], None] = make.gauge(
            "watchers", "Requests that wait for changes.", multiprocess_mode="livesum"
        ).set
        self.audit_log = AuditLogInstruments(make)


def shared_folder() -> str | None:
    """The folder in which this process shares its metrics with others; None if it does not."""
    if values.ValueClass._multiprocess:
        return os.environ[METRICS_FOLDER]
    return None


def check_shared_folder() -> None:
    """Check that the folder for shared metrics, if there is one, can be written.

    Raises:
        ConfigurationError: it cannot.
    """
    folder = shared_folder()
    if folder is not None and not (os.path.isdir(folder) and os.access(folder, os.W_OK)):
        raise ConfigurationError(
            f"{METRICS_FOLDER} is {folder}, which is not a writable directory: create it, and "
            f"empty it before each start"
        )
