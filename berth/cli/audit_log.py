# SPDX-License-Identifier: Apache-2.0
"""`berth audit-log`: reads the audit log, in which the service notes who wrote what."""

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

import click

from berth.cli.failure import CommandFailed
from berth.cli.options import argument, flag, option
from berth.cli.output import say, say_json
from berth.model.ids import parse_uuid_lax

#: Requests of cut lines that a message names.
_NAMED_MAX: Final = 3


@click.group(name="audit-log")
def audit_log() -> None:
    """Read the audit log: who changed what, and when.

    The service writes it if [berth]audit_log names a file. `berth audit` is a different command: it
    finds orphaned allocations.
    """


def _moment(text: str) -> datetime:
    """A time of the command line, absolute or relative to now.

    Raises:
        BadParameter: it is none.
    """
    try:
        return parse_moment(text, datetime.now(UTC))
    except (ValueError, OverflowError) as error:
        raise click.BadParameter(
            f"{text} is not a time: write 2026-11-24T03:12 (UTC), 2026-11-24T03:12+01:00, or "
            "2h for two hours ago"
        ) from error


@audit_log.command()
@argument(
    "files", "FILE...", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@option("--host HOST", "Only writes that concern a host or one of its providers, by name or UUID.")
@option("--consumer CONSUMER", "Only writes of a consumer, by UUID or name.")
@option(
    "--project PROJECT", "Only writes of the project's consumers, or by callers of the project."
)
@option(
    "--since TIME",
    "From this time on: 2026-11-24T03:00 is UTC, 2h is two hours ago.",
    type=_moment,
)
@option("--until TIME", "Before this time.", type=_moment)
@flag("--json", "Print the lines as they are in the log.", parameter="as_json")
def show(
    files: tuple[Path, ...],
    host: str | None,
    consumer: str | None,
    project: str | None,
    since: datetime | None,
    until: datetime | None,
    as_json: bool,
) -> None:
    """Show the writes of an audit log that match all options, oldest first.

    Give the rotated files too, in any order, compressed with gzip or not: audit.jsonl*
    """
    filters = Filters(host, consumer, project, since, until)
    reading = Reading()
    try:
        for record in matching(files, filters, reading):
            if as_json:
                say_json(record, indent=None)
            else:
                first, *others = _described(record)
                say(first, *(f"  {line}" for line in others))
    except OSError as error:
        raise CommandFailed(
            f"cannot read {error.filename}: {(error.strerror or str(error)).lower()}"
        ) from error
    _report(reading)


def _report(reading: Reading) -> None:
    """Say on stderr why the answer may be incomplete."""
    if uncertain := reading.uncertain:
        named = ", ".join(uncertain[:_NAMED_MAX]) + (" ..." if uncertain[_NAMED_MAX:] else "")
        say(
            f"berth: {len(uncertain)} more lines were too long to list everything, and may match: "
            f"{named}",
            err=True,
        )
    if reading.damaged:
        say(f"berth: {reading.damaged} damaged lines skipped", err=True)


# --- One line, for people -------------------------------------------------------------------------


def _described(record: Record) -> Iterator[str]:
    """The lines about a request."""
    yield f"{record['time']}  {_act(record)}"
    if "detail" in record:
        yield " ".join(record["detail"].split())
    yield from _effects(record)
    if omitted := record.get("omitted"):
        yield "and " + ", ".join(f"{count} more {name}" for name, count in omitted.items())
    names = ("request_id", "global_request_id", "trace_id")
    if ids := [record[name] for name in names if name in record]:
        yield "  ".join(ids)


def _act(record: Record) -> str:
    """What came of which request; without one, what berth did."""
    if "method" not in record:
        return f"{record['outcome']}  berth  {record['operation'].replace('_', ' ')}"
    outcome = f"{record['outcome']} ({record['status']})"
    return f"{outcome}  {_caller(record)}  {record['method']} {record['path']}"


def _effects(record: Record) -> Iterator[str]:
    """What was written, or asked for."""
    providers = record.get("providers", ())
    names = {each.get("uuid") or each["name"]: _provider(each) for each in providers}
    changes: dict[str, list[str]] = {}
    for each in record.get("allocations", ()):
        amount = f"{each['resource_class']} {_change(each)}"
        name = names.get(each["provider"], each["provider"])
        changes.setdefault(each["consumer"], []).append(f"{name}: {amount}")
    for consumer in record.get("consumers", ()):
        yield _consumer(consumer)
        yield from (f"  {change}" for change in changes.pop(consumer["uuid"], ()))
    for uuid, others in changes.items():
        yield f"consumer {uuid}"
        yield from (f"  {change}" for change in others)
    for each in record.get("inventories", ()):
        name = names.get(each["provider"], each["provider"])
        yield f"{name}: inventory of {each['resource_class']}: {_change(each)}"
    yield from _other_effects(record)
    if not ("allocations" in record or "inventories" in record):
        yield from (f"provider {name}" for name in names.values())


def _other_effects(record: Record) -> Iterator[str]:
    """The state before and after of what is neither an allocation nor an inventory."""
    changes = (record.get("after") or {}).get("changes")
    if changes is not None:
        for each in changes:
            members = ", ".join(each["after"]) if each["change"] == "update" else ""
            yield f"{each['change']} {each['name']}" + (f": {members}" if members else "")
    elif not {"before", "after", "asked"}.isdisjoint(record):
        yield _change(record)


def _caller(record: Record) -> str:
    user = record.get("user_name") or record.get("user_id") or "-"
    project = record.get("project_name") or record.get("project_id")
    address = record.get("remote_addr")
    return user + (f" of {project}" if project else "") + (f" at {address}" if address else "")


def _provider(provider: Record) -> str:
    name = provider.get("name") or provider["uuid"]
    host = provider.get("host")
    return f"{name} on {host}" if host and host != name else str(name)


def _consumer(consumer: Record) -> str:
    name = f" {consumer['name']}" if "name" in consumer else ""
    owner = f" of {consumer['project_id']}" if "project_id" in consumer else ""
    before = consumer.get("project_id_before")
    moved = f" (before: of {before})" if before and before != consumer.get("project_id") else ""
    return f"consumer {consumer['uuid']}{name}{owner}{moved}"


def _change(entry: Record) -> str:
    """The state before and after; only what has changed of an inventory."""
    if "asked" in entry and "before" not in entry:
        return f"asked for {_state(entry['asked'])}"
    if "before" not in entry:
        return _state(entry["after"])
    before, after = entry["before"], entry.get("after", entry.get("asked"))
    if isinstance(before, dict) and isinstance(after, dict):
        changed = [name for name in after if before.get(name) != after[name]]
        before = {name: before.get(name) for name in changed}
        after = {name: after[name] for name in changed}
    if before == after:
        return "unchanged"
    arrow = "->" if "after" in entry else "-> perhaps"
    return f"{_state(before)} {arrow} {_state(after)}"


def _state(state: Any) -> str:
    if state is None:
        return "none"
    if isinstance(state, dict):
        return " ".join(
            f"{name}={len(value) if isinstance(value, list) else value}"
            for name, value in state.items()
        )
    return str(state)


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


# --- Files ----------------------------------------------------------------------------------------


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


# --- Filters --------------------------------------------------------------------------------------


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
