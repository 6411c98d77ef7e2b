# SPDX-License-Identifier: Apache-2.0
"""`berth audit-log`: reads the audit log, in which the service notes who wrote what."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from berth.cli.audit_log_files import Filters, Reading, Record, matching, parse_moment
from berth.cli.exit_codes import ExitCode
from berth.cli.failure import CommandFailed
from berth.cli.output import say, say_json

#: Requests of cut lines that a message names.
_NAMED_MAX: Final = 3


@click.group(name="audit-log")
def audit_log() -> None:
    """Read the audit log: who changed what, and when.

    The service writes it if [berth]audit_log names a file. `berth audit` is a different command: it
    finds orphaned allocations.
    """


class _Moment(click.ParamType[datetime]):
    """A time, absolute or relative to now."""

    name = "TIME"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Parse a time of the command line."""
        try:
            return parse_moment(value, datetime.now(UTC))
        except (ValueError, OverflowError):
            self.fail(
                f"{value} is not a time: write 2026-11-24T03:12 (UTC), 2026-11-24T03:12+01:00, or "
                "2h for two hours ago",
                param,
                ctx,
            )


@audit_log.command()
@click.argument(
    "files",
    metavar="FILE...",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
)
@click.option(
    "--host",
    metavar="HOST",
    help="Only writes that concern a host or one of its providers, by name or UUID.",
)
@click.option("--consumer", metavar="CONSUMER", help="Only writes of a consumer, by UUID or name.")
@click.option(
    "--project",
    metavar="PROJECT",
    help="Only writes of the project's consumers, or by callers of the project.",
)
@click.option(
    "--since",
    metavar="TIME",
    type=_Moment(),
    help="From this time on: 2026-11-24T03:00 is UTC, 2h is two hours ago.",
)
@click.option("--until", metavar="TIME", type=_Moment(), help="Before this time.")
@click.option("--json", "as_json", is_flag=True, help="Print the lines as they are in the log.")
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
            f"cannot read {error.filename}: {(error.strerror or str(error)).lower()}",
            ExitCode.CONFIGURATION,
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


# --- One line, for people ------------------------------------------------------------------------


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
