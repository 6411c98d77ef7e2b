# SPDX-License-Identifier: Apache-2.0
"""The lines of files of the audit log, oldest file first, filtered as they are read.

A file may be rotated, compressed with gzip, damaged by a full disk, or as large as it likes: no
more than one line is in memory.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from berth.model.ids import parse_uuid_lax

#: One request that wrote; docs/how-to/audit-log.md describes its members.
Record = dict[str, Any]

_GZIP: Final = b"\x1f\x8b"
#: How each line begins. After a full disk, one may begin in the middle of another.
_BEGIN: Final = b'{"time":'
#: Longer lines are damaged (`berth.edge.audit_line.LINE_BYTES_MAX`).
_LINE_BYTES_MAX: Final = 2**20

_AGO: Final = re.compile(r"(\d{1,6})([smhdw])")
_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Filters:
    """Which lines are wanted; None for no condition.

    Attributes:
        host: name or UUID of a host or of any provider.
        consumer: UUID or name.
        project: that of a consumer, or of the caller.
        since: the first moment.
        until: the first moment after it.
    """

    host: str | None = None
    consumer: str | None = None
    project: str | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(slots=True)
class Reading:
    """What was noticed while lines were read."""

    #: Lines that could not be read.
    damaged: int = 0
    #: The requests of lines that were cut, so that what they left out may match; their times if
    #: there was no request.
    uncertain: list[str] = field(default_factory=list)


def parse_moment(text: str, now: datetime) -> datetime:
    """A time of ISO 8601, in UTC unless it has an offset, or how long ago: 90s, 15m, 2h, 7d, 4w.

    Raises:
        ValueError: it is neither.
    """
    if ago := _AGO.fullmatch(text):
        return now - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def matching(files: Sequence[Path], filters: Filters, reading: Reading) -> Iterator[Record]:
    """The lines of some files that match, by files in the order of their first lines.

    Raises:
        OSError: a file cannot be read.
    """
    conditions = _conditions(filters)
    for file in sorted(files, key=_first_time):
        for record in _records(file, reading):
            if not _is_within(record, filters):
                continue
            if all(condition.holds(record) for condition in conditions):
                yield record
            elif all(condition.may_hold(record) for condition in conditions):
                reading.uncertain.append(record.get("request_id") or record["time"])


# --- Files ---------------------------------------------------------------------------------------


def _first_time(file: Path) -> str:
    """The time of the first line; empty files come last, where they do no harm."""
    return next((str(record["time"]) for record in _records(file, Reading())), "~")


def _records(file: Path, reading: Reading) -> Iterator[Record]:
    with _opened(file) as lines:
        try:
            while line := lines.readline(_LINE_BYTES_MAX):
                yield from _parsed(line, reading)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            reading.damaged += 1


def _opened(file: Path) -> BinaryIO:
    with file.open("rb") as plain:
        is_compressed = plain.read(2) == _GZIP
    return cast(BinaryIO, gzip.open(file)) if is_compressed else file.open("rb")


def _parsed(line: bytes, reading: Reading) -> Iterator[Record]:
    if not line.strip():
        return
    try:
        record = json.loads(line)
    except ValueError:
        reading.damaged += 1
        begin = line.rfind(_BEGIN)
        if begin > 0:
            yield from _parsed(line[begin:], reading)
        return
    if isinstance(record, dict) and isinstance(record.get("time"), str):
        yield record
    else:
        reading.damaged += 1


# --- Filters -------------------------------------------------------------------------------------


class _Condition(NamedTuple):
    """A condition on a line; `entries` is the list that decides it."""

    entries: str
    holds: Callable[[Record], bool]

    def may_hold(self, record: Record) -> bool:
        """Whether it holds, or may hold for an entry that the line leaves out."""
        return self.holds(record) or self.entries in record.get("omitted", {})


def _is_within(record: Record, filters: Filters) -> bool:
    if filters.since is None and filters.until is None:
        return True
    moment = datetime.fromisoformat(record["time"])
    return (filters.since is None or filters.since <= moment) and (
        filters.until is None or moment < filters.until
    )


def _conditions(filters: Filters) -> list[_Condition]:
    """The conditions besides the time."""
    conditions = []
    if filters.host is not None:
        hosts = _spellings(filters.host)
        conditions.append(_Condition("providers", lambda record: _is_about_host(record, hosts)))
    if filters.consumer is not None:
        consumers = _spellings(filters.consumer)
        conditions.append(_Condition("consumers", lambda record: _is_of(record, consumers)))
    if (project := filters.project) is not None:
        conditions.append(_Condition("consumers", lambda record: _is_of_project(record, project)))
    return conditions


def _spellings(reference: str) -> Collection[str]:
    """A name or a UUID, and the UUID as the log has it."""
    return {reference, parse_uuid_lax(reference) or reference}


def _is_about_host(record: Record, hosts: Collection[str]) -> bool:
    return _has(record, "providers", hosts, "uuid", "name", "host") or any(
        state.get("name") in hosts for state in _other_names(record)
    )


def _other_names(record: Record) -> Iterator[Record]:
    """What has the names that providers of a line had before, or have since."""
    state = record.get("after") or record.get("asked")
    if state and "providers" in record:
        yield state
        for change in state.get("changes", ()):
            yield from (side for side in (change["before"], change["after"]) if side)


def _is_of(record: Record, consumers: Collection[str]) -> bool:
    parameters = record.get("parameters", {})
    return (
        _has(record, "consumers", consumers, "uuid", "name")
        or _has(record, "allocations", consumers, "consumer")
        # A refused request may not know the consumer's UUID.
        or ("project_id" in parameters and parameters.get("name") in consumers)
    )


def _is_of_project(record: Record, project: str) -> bool:
    parameters = record.get("parameters", {})
    return (
        project in (record.get("project_id"), record.get("project_name"))
        or project in (parameters.get("project_id"), parameters.get("project"))
        or _has(record, "consumers", [project], "project_id", "project_id_before")
    )


def _has(record: Record, entries: str, values: Collection[str], *members: str) -> bool:
    return any(
        entry.get(member) in values for entry in record.get(entries, ()) for member in members
    )
