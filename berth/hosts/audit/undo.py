# SPDX-License-Identifier: Apache-2.0
"""Removes what an audit found, and restores it from an undo file.

The undo file records each change before it is made, with the state before and after (`undo_file`).
A change is made only if the service is still in the state that the audit found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final

from berth.hosts.audit.findings import Finding
from berth.hosts.audit.world import UNTYPED, UNTYPED_VERSION, VERSION, Consumers
from berth.hosts.errors import Conflict, NotThere, Refused
from berth.hosts.service import Service, named_path, provider_path
from berth.hosts.undo_file import UndoFile

_CONFLICT: Final = 409

_ALLOCATIONS: Final = "allocations"
_PROVIDER: Final = "provider"

#: A line of the file.
Change = Mapping[str, Any]

#: The parts of a provider in the order in which they are written: inventory comes last, so that an
#: incomplete provider offers nothing.
_PARTS: Final = ("aggregates", "traits", "inventories")


class Outcome(Enum):
    """The result of one change."""

    DONE = "done"
    #: The service was in the wanted state already.
    NOTHING_TO_DO = "nothing to do"
    #: Another client changed it since, so it is left alone.
    CHANGED_SINCE = "changed since, left alone"
    #: Another client changed it meanwhile, and what was deleted by then could not be restored.
    PARTLY_DONE = "changed meanwhile, partly done"


def fix(service: Service, consumers: Consumers, finding: Finding, undo: UndoFile) -> Outcome:
    """Fix one problem.

    Raises:
        Refused: the service refused; nothing has changed.
        Unreachable: the change may or may not have been made; it is in the undo file.
    """
    assert finding.can_be_fixed
    if finding.is_about_a_consumer:
        return _release(service, consumers[finding.subject], finding, undo)
    return _delete_tree(service, finding, undo)


def read_changes(undo: UndoFile) -> list[Change]:
    """The changes in a file, the last first; each names its `subject`.

    Raises:
        BadConfiguration: the file cannot be read.
    """
    changes = undo.read(lambda change: change.get("what") in _RESTORERS, made_by="an audit")
    return changes[::-1]


def restore(service: Service, change: Change) -> Outcome:
    """Restore one change.

    Raises:
        Refused, Unreachable: a request failed; it can be tried again.
    """
    return _RESTORERS[change["what"]](service, change)


# --- Consumers ------------------------------------------------------------------------------------


def _release(
    service: Service, seen: Mapping[str, Any], finding: Finding, undo: UndoFile
) -> Outcome:
    left = {
        provider: part
        for provider, part in seen["allocations"].items()
        if provider not in finding.providers
    }
    undo.append(
        {
            "what": _ALLOCATIONS,
            "subject": finding.subject,
            "before": seen,
            "after": _amounts(left),
        }
    )
    try:
        _put_allocations(service, finding.subject, seen, left, seen["consumer_generation"])
    except Conflict:
        return Outcome.CHANGED_SINCE
    return Outcome.DONE


def _restore_allocations(service: Service, change: Change) -> Outcome:
    consumer, before = change["subject"], change["before"]
    now = service.get(named_path("/allocations", consumer), version=VERSION)
    if _amounts(now["allocations"]) == _amounts(before["allocations"]):
        return Outcome.NOTHING_TO_DO
    if _amounts(now["allocations"]) != change["after"]:
        return Outcome.CHANGED_SINCE
    generation = now.get("consumer_generation")
    _put_allocations(service, consumer, before, before["allocations"], generation)
    return Outcome.DONE


def _put_allocations(
    service: Service,
    consumer: str,
    body: Mapping[str, Any],
    allocations: Mapping[str, Any],
    generation: int | None,
) -> None:
    kind = body["consumer_type"]
    # COMPAT spec/rest-api.md 10: a missing type is shown as `unknown`, which cannot be written.
    has_type = kind != UNTYPED
    service.put(
        named_path("/allocations", consumer),
        {
            "allocations": {
                provider: {"resources": part["resources"]} for provider, part in allocations.items()
            },
            "project_id": body["project_id"],
            "user_id": body["user_id"],
            "consumer_generation": generation,
            **({"consumer_type": kind} if has_type else {}),
        },
        version=VERSION if has_type else UNTYPED_VERSION,
    )


def _amounts(allocations: Mapping[str, Any]) -> dict[str, Any]:
    return {provider: part["resources"] for provider, part in allocations.items()}


# --- Providers ------------------------------------------------------------------------------------


def _delete_tree(service: Service, finding: Finding, undo: UndoFile) -> Outcome:
    """Delete a tree, children first: completely, or not at all as far as other clients allow."""
    listed = service.list_providers(in_tree=finding.subject)
    if not listed:
        return Outcome.NOTHING_TO_DO
    is_as_found = {provider["uuid"] for provider in listed} == {*finding.providers}
    # The service would refuse only the provider that has allocations, after its children are
    # deleted.
    if not is_as_found or any(_is_held_of(service, uuid) for uuid in finding.providers):
        return Outcome.CHANGED_SINCE
    deleted: list[Change] = []
    for uuid in reversed(finding.providers):
        try:
            seen = _whole_provider(service, uuid)
            change = {"what": _PROVIDER, "subject": uuid, "before": seen}
            undo.append(change)
            service.delete(provider_path(uuid))
        except NotThere:
            continue
        except Refused as error:
            is_whole = _put_up_again(service, reversed(deleted))
            if is_whole and error.status != _CONFLICT:
                raise
            return Outcome.CHANGED_SINCE if is_whole else Outcome.PARTLY_DONE
        deleted.append(change)
    return Outcome.DONE


def _is_held_of(service: Service, uuid: str) -> bool:
    return bool(service.get(provider_path(uuid, "allocations"))["allocations"])


def _put_up_again(service: Service, changes: Iterable[Change]) -> bool:
    """Restore what was just deleted, parents first; whether all of it exists again."""
    try:
        return all(_restore_provider(service, change) is Outcome.DONE for change in changes)
    except Refused:
        return False


def _whole_provider(service: Service, uuid: str) -> dict[str, Any]:
    provider = service.get(provider_path(uuid))
    return {
        "name": provider["name"],
        "parent_provider_uuid": provider["parent_provider_uuid"],
        **{part: service.get(provider_path(uuid, part))[part] for part in _PARTS},
    }


def _restore_provider(service: Service, change: Change) -> Outcome:
    uuid, before = change["subject"], change["before"]
    try:
        now = _whole_provider(service, uuid)
        generation = service.get(provider_path(uuid))["generation"]
    except NotThere:
        body = {"uuid": uuid, "name": before["name"]}
        if before["parent_provider_uuid"] is not None:
            body["parent_provider_uuid"] = before["parent_provider_uuid"]
        generation = service.post("/resource_providers", body)["generation"]
    else:
        if now == before:
            return Outcome.NOTHING_TO_DO
        # A provider with only some of its parts was being restored when something failed.
        if any(now[name] and now[name] != before[name] for name in before):
            return Outcome.CHANGED_SINCE
    for part in _PARTS:
        answer = service.put(
            provider_path(uuid, part),
            {part: before[part], "resource_provider_generation": generation},
        )
        generation = answer["resource_provider_generation"]
    return Outcome.DONE


_RESTORERS: Final = {_ALLOCATIONS: _restore_allocations, _PROVIDER: _restore_provider}
