# SPDX-License-Identifier: Apache-2.0
"""Prints which nodes were migrated, or would be, for people and for programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from berth.cli.failure import CommandFailed, ExitCode, failure_for
from berth.cli.output import say, say_json
from berth.cli.tree_drawing import print_changes, tree_as_json
from berth.hosts.errors import BadConfiguration, BadProviderTree, Conflict, some_of
from berth.hosts.migration import Outcome
from berth.hosts.plan import Plan, amounts_of
from berth.hosts.tracker import Rehearsal

#: How many nodes with the same error are named.
_NAMED_MAX: Final = 10

#: The command's exit code if several nodes failed: the first of these that applies.
_WORST_FIRST: Final = (
    ExitCode.INTERNAL,
    ExitCode.HOST,
    ExitCode.CONFIGURATION,
    ExitCode.SERVICE,
    ExitCode.IN_USE,
)

#: By provider and resource class.
Amounts = Mapping[tuple[str, str], int]


def print_text(done: Sequence[Outcome], undo: Path | None, *, dry_run: bool) -> None:
    """Print the result for people; for a dry run, the changes.

    Args:
        undo: the file that undoes it, if there is one.
    """
    idle = [outcome.node.name for outcome in done if not (outcome.plan or outcome.error)]
    for outcome in done:
        if outcome.rehearsal is not None and outcome.plan:
            _print_rehearsal(outcome.node.uuid, outcome.node.name, outcome.rehearsal)
        elif outcome.plan:
            say(f"{outcome.node.name}: done, {_summary(outcome.plan)}")
    if idle:
        say(f"{some_of(idle, _NAMED_MAX)}: nothing to do")
    by_error: dict[tuple[str, ...], list[str]] = {}
    for outcome in done:
        if outcome.error is not None:
            by_error.setdefault(_faults_of(outcome.error), []).append(outcome.node.name)
    for faults, names in by_error.items():
        head = f"{some_of(names, _NAMED_MAX)}: not migrated: "
        if len(faults) == 1:
            say(head + faults[0])
        else:
            say(head, *(f"  {fault}" for fault in faults))
    if undo is not None and not dry_run:
        say(f"to undo this: berth migrate-inventory --undo {undo}")


def print_json(done: Sequence[Outcome], undo: Path | None, *, dry_run: bool) -> None:
    """Print the result for programs."""
    body = {
        "dry_run": dry_run,
        "undo_file": None if undo is None else str(undo),
        "nodes": [_as_json(outcome, dry_run=dry_run) for outcome in done],
    }
    say_json(body)


def end(done: Sequence[Outcome], *, dry_run: bool) -> None:
    """Set the exit code.

    Raises:
        CommandFailed: some nodes were not migrated, or a dry run found changes pending.
    """
    nodes = _counted(len(done), "node")
    failed = [outcome.error for outcome in done if outcome.error is not None]
    if failed:
        codes = {_code_of(error) for error in failed}
        raise CommandFailed(
            f"{len(failed)} of {nodes} cannot be migrated and "
            f"{'is' if len(failed) == 1 else 'are'} unchanged",
            next((code for code in _WORST_FIRST if code in codes), ExitCode.HOST),
        )
    pending = sum(1 for outcome in done if outcome.plan)
    if dry_run and pending:
        raise CommandFailed(
            f"dry run: {pending} of {nodes} would change; nothing was written",
            ExitCode.PENDING,
        )


def _code_of(error: Exception) -> ExitCode:
    if isinstance(error, Conflict):
        return ExitCode.IN_USE
    return failure_for(error).code


# --- For people -----------------------------------------------------------------------------------


def _print_rehearsal(uuid: str, name: str, rehearsal: Rehearsal) -> None:
    say(f"{name} ({uuid})")
    print_changes(rehearsal.before, rehearsal.after, uuid, indent=2)
    for consumer in _moved(rehearsal.plan):
        say(f"  ~ consumer {_draw_move(rehearsal, consumer)}")
    writes = sum(_writes(rehearsal.plan).values())
    say(f"  {_summary(rehearsal.plan)}; {_counted(writes, 'write')}")


def _draw_move(rehearsal: Rehearsal, consumer: str) -> str:
    gone, come = _move(rehearsal, consumer)
    parts = [_draw_amounts(rehearsal, amounts) for amounts in (gone, come) if amounts]
    return f"{consumer}: {' -> '.join(parts)}"


def _draw_amounts(rehearsal: Rehearsal, amounts: Amounts) -> str:
    by_provider: dict[str, list[str]] = {}
    for (provider, resource_class), amount in amounts.items():
        by_provider.setdefault(provider, []).append(f"{resource_class}={amount}")
    return ", ".join(
        " ".join([_name(rehearsal, provider), *words]) for provider, words in by_provider.items()
    )


def _summary(plan: Plan) -> str:
    return (
        f"{_counted(len(plan.created), 'provider')} created, {len(_changed(plan))} changed, "
        f"{len(plan.deleted)} deleted; {_counted(len(_moved(plan)), 'consumer')} moved"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _faults_of(error: Exception) -> tuple[str, ...]:
    if isinstance(error, BadConfiguration | BadProviderTree):
        return error.faults
    return (_sentence(error),)


def _sentence(error: Exception) -> str:
    if isinstance(error, Conflict):
        return f"another program writes to it; stop every service and try again ({error})"
    return str(failure_for(error))


# --- What a plan does -----------------------------------------------------------------------------


def _moved(plan: Plan) -> Sequence[str]:
    return sorted(plan.allocations or ())


def _changed(plan: Plan) -> set[str]:
    """The providers that exist before and after, and are written."""
    written = {data.uuid for data in (*plan.renamed, *plan.aggregates, *plan.traits)}
    written |= plan.inventories.keys()
    return written - {data.uuid for data in (*plan.created, *plan.deleted)}


def _move(rehearsal: Rehearsal, consumer: str) -> tuple[Amounts, Amounts]:
    """The allocations that a consumer loses, and those that it gets."""
    before = amounts_of(rehearsal.current[consumer])
    after = amounts_of((rehearsal.plan.allocations or {})[consumer])
    changed = sorted(key for key in {*before, *after} if before.get(key) != after.get(key))
    gone = {key: before.get(key, 0) - after.get(key, 0) for key in changed}
    return (
        {key: less for key, less in gone.items() if less > 0},
        {key: -less for key, less in gone.items() if less < 0},
    )


def _writes(plan: Plan) -> dict[str, int]:
    """The number of requests of a plan, by kind, without those for new classes and traits."""
    is_at_once = plan.allocations is not None
    deleted = {data.uuid for data in plan.deleted}
    return {
        "create": len(plan.created),
        "rename": len(plan.renamed),
        "aggregates": len(plan.aggregates),
        "traits": len(plan.traits),
        "inventories": 0 if is_at_once else len(plan.inventories.keys() - deleted),
        "reshape": int(is_at_once and bool(plan.inventories or plan.allocations)),
        "delete": len(deleted),
    }


def _name(rehearsal: Rehearsal, provider: str) -> str:
    """The name of a provider, or its UUID if it is not in the tree."""
    for tree in rehearsal.after, rehearsal.before:
        if tree.exists(provider):
            return tree.data(provider).name
    return provider


# --- For programs ---------------------------------------------------------------------------------


def _as_json(outcome: Outcome, *, dry_run: bool) -> dict[str, Any]:
    plan, error = outcome.plan, outcome.error
    if error is not None:
        state = "failed"
    elif not plan:
        state = "nothing to do"
    else:
        state = "to do" if dry_run else "done"
    body = {
        "name": outcome.node.name,
        "uuid": outcome.node.uuid,
        "state": state,
        "error": None if error is None else _sentence(error),
        "created": [data.name for data in plan.created],
        "changed": sorted(_changed(plan)),
        "deleted": [data.name for data in plan.deleted],
        "consumers": _moved(plan),
        "writes": _writes(plan),
    }
    if outcome.rehearsal is not None:
        body |= _rehearsal_as_json(outcome.rehearsal, outcome.node.uuid)
    return body


def _rehearsal_as_json(rehearsal: Rehearsal, root: str) -> dict[str, Any]:
    moves = {consumer: _move(rehearsal, consumer) for consumer in _moved(rehearsal.plan)}
    return {
        "before": [*tree_as_json(rehearsal.before, root)],
        "after": [*tree_as_json(rehearsal.after, root)],
        "moves": [
            {
                "consumer": consumer,
                "from": _amounts_as_json(rehearsal, gone),
                "to": _amounts_as_json(rehearsal, come),
            }
            for consumer, (gone, come) in moves.items()
        ],
    }


def _amounts_as_json(rehearsal: Rehearsal, amounts: Amounts) -> list[dict[str, Any]]:
    return [
        {
            "provider": _name(rehearsal, provider),
            "uuid": provider,
            "resource_class": resource_class,
            "amount": amount,
        }
        for (provider, resource_class), amount in amounts.items()
    ]
