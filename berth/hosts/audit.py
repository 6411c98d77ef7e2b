# SPDX-License-Identifier: Apache-2.0
"""Finds orphaned allocations and providers without a host, removes them, and restores them.

The service does not know which guests and hosts exist. The operator lists them, and the audit
checks only what a list covers. Anything that is not known to be wrong is left alone.

A provider costs one request. A consumer costs one too, and there are far more consumers, so only
those are read about which the providers do not say enough.

The undo file records each change before it is made, with the state before and after (`UndoFile`).
A change is made only if the service is still in the state that the audit found.
Source: spec/compute-side.md 7, rows 1 to 3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from berth.hosts.errors import Conflict, NotThere, Refused
from berth.hosts.files import UndoFile
from berth.hosts.provider_tree import SHARING_TRAIT
from berth.hosts.service import Service, named_path, provider_path, with_all_below

#: The first microversion that shows consumer types.
VERSION: Final = "1.38"

#: The last microversion without consumer types; a write keeps the type that a consumer has.
UNTYPED_VERSION: Final = "1.37"

#: The type that the service shows for consumers that were written without one, such as all of
#: nova's.
UNTYPED: Final = "unknown"

#: Consumers by UUID, as the service shows them.
Consumers = Mapping[str, Mapping[str, Any]]

#: By provider and resource class: the allocated amount, or the total.
Amounts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class World:
    """The state of a service."""

    #: By UUID, as the service lists them.
    providers: Mapping[str, Mapping[str, Any]]
    #: The sharing providers.
    sharing: frozenset[str]
    #: By consumer, the providers on which it has allocations.
    providers_of: Mapping[str, frozenset[str]]

    def root_of(self, provider: str) -> str:
        """The root of a provider's tree."""
        return str(self.providers[provider]["root_provider_uuid"])

    def name_of(self, provider: str) -> str:
        """The name of a provider."""
        return str(self.providers[provider]["name"])

    def hosts(self) -> list[str]:
        """The roots, in the order of their UUIDs; sharing providers are not hosts."""
        return sorted(
            uuid
            for uuid, provider in self.providers.items()
            if uuid == provider["root_provider_uuid"] and uuid not in self.sharing
        )

    def tree_of(self, root: str) -> list[str]:
        """The providers of a tree, parents before children."""
        return with_all_below(root, self.providers.values())

    def hosts_of(self, consumer: str) -> set[str]:
        """The roots of the trees in which a consumer has allocations; sharing providers are not
        hosts.
        """
        return {
            self.root_of(provider)
            for provider in self.providers_of[consumer]
            if provider in self.providers and provider not in self.sharing
        }


def read_world(service: Service) -> World:
    """Read the providers and their consumers; a provider that is deleted meanwhile is left out."""
    listed = service.list_providers(version=VERSION)
    sharing = service.list_providers(version=VERSION, required=SHARING_TRAIT)
    providers_of: dict[str, set[str]] = {}
    for provider in listed:
        try:
            allocations = service.get_part(provider["uuid"], "allocations")
        except NotThere:
            continue
        for consumer in allocations:
            providers_of.setdefault(consumer, set()).add(provider["uuid"])
    return World(
        providers={provider["uuid"]: provider for provider in listed},
        sharing=frozenset(provider["uuid"] for provider in sharing),
        providers_of={
            consumer: frozenset(providers) for consumer, providers in providers_of.items()
        },
    )


def read_inventories(service: Service, world: World, hosts: Iterable[str]) -> Amounts:
    """The total inventories in the trees of some hosts; a provider that is deleted meanwhile is
    left out.
    """
    inventories: dict[str, dict[str, int]] = {}
    for provider in (uuid for host in hosts for uuid in world.tree_of(host)):
        try:
            records = service.get_part(provider, "inventories")
        except NotThere:
            continue
        inventories[provider] = {name: record["total"] for name, record in records.items()}
    return inventories


def read_consumers(service: Service, consumers: Iterable[str]) -> Consumers:
    """The current allocations of some consumers; those without any are left out."""
    bodies = {
        consumer: service.get(named_path("/allocations", consumer), version=VERSION)
        for consumer in consumers
    }
    return {consumer: body for consumer, body in bodies.items() if body["allocations"]}


# --- What is wrong: pure, no I/O -----------------------------------------------------------------

MIGRATION = "MIGRATION"

#: Stands for all types of consumers, when no list was given.
ANY_TYPE = "any"


@dataclass(frozen=True, slots=True)
class Known:
    """The operator's lists; whatever they do not cover is not checked."""

    #: By consumer type, the UUIDs of all consumers that exist.
    living: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: The names and UUIDs of all hosts that exist; None: no list was given.
    hosts: frozenset[str] | None = None
    #: By consumer, the names or UUIDs of the hosts that it runs on, or moves between.
    placed: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem."""

    #: `orphaned consumer`, `leaked migration`, `double allocation` or `provider without host`.
    kind: str
    #: The UUID of the consumer, or of the root provider.
    subject: str
    #: The problem, for people.
    sentence: str
    #: For a consumer: the providers on which it should have no allocation. For a root: its whole
    #: tree, parents first. Empty: the correct state is unknown, and nothing can be fixed.
    providers: tuple[str, ...]
    #: What a fix would remove: by provider, the amounts of its allocations, or of its inventories.
    lost: Amounts

    @property
    def is_about_a_consumer(self) -> bool:
        """Whether the subject is a consumer, and not a provider."""
        return self.kind != "provider without host"

    @property
    def can_be_fixed(self) -> bool:
        """Whether the correct state is known."""
        return bool(self.providers)


def suspects(world: World, facts: Known) -> list[str]:
    """The consumers to check: on no list of living consumers, or allocated on several hosts."""
    living = frozenset().union(*facts.living.values())
    return [
        consumer
        for consumer in sorted(world.providers_of)
        if (facts.living and consumer not in living) or len(world.hosts_of(consumer)) > 1
    ]


def missing_hosts(world: World, facts: Known) -> list[str]:
    """The hosts of a service that are not on the list of all hosts."""
    if facts.hosts is None:
        return []
    return [host for host in world.hosts() if not {host, world.name_of(host)} & facts.hosts]


def find(world: World, consumers: Consumers, facts: Known, inventories: Amounts) -> list[Finding]:
    """Find the problems: consumers first, in the order of their UUIDs.

    Args:
        consumers: the suspects.
        inventories: those of the trees of the missing hosts.
    """
    return [*_of_consumers(world, consumers, facts), *_of_hosts(world, facts, inventories)]


def excess(world: World, findings: Iterable[Finding]) -> str | None:
    """Say which share of the fleet a fix would remove, if it is suspiciously large: more than one,
    and more than a tenth of the hosts or of the consumers. A list was more likely cut short then.
    """
    findings = list(findings)
    consumers = sum(finding.is_about_a_consumer for finding in findings)
    for number, total, noun in (
        (len(findings) - consumers, len(world.hosts()), "hosts"),
        (consumers, len(world.providers_of), "consumers"),
    ):
        if number > max(1, total // 10):
            return f"{number} of {total} {noun}"
    return None


def unjudged(world: World, consumers: Consumers, facts: Known) -> dict[str, int]:
    """Count the consumers, by type, that no list covers."""
    if not facts.living:
        return {ANY_TYPE: len(world.providers_of)} if world.providers_of else {}
    kinds = (body["consumer_type"] for body in consumers.values())
    return dict(Counter(kind for kind in kinds if kind not in facts.living))


def _of_consumers(world: World, consumers: Consumers, facts: Known) -> Iterator[Finding]:
    for consumer, body in sorted(consumers.items()):
        kind = body["consumer_type"]
        living = facts.living.get(kind)
        if living is not None and consumer not in living:
            yield _gone(world, consumer, body)
        elif kind != MIGRATION:
            yield from _double(world, facts, consumer, body)


def _gone(world: World, consumer: str, body: Mapping[str, Any]) -> Finding:
    kind, lost = body["consumer_type"], _amounts(body["allocations"])
    is_migration = kind == MIGRATION
    kind_in_words = "leaked migration" if is_migration else "orphaned consumer"
    who = kind_in_words if is_migration or kind == UNTYPED else f"{kind_in_words} ({kind})"
    return Finding(
        kind=kind_in_words,
        subject=consumer,
        sentence=f"{who} {consumer} still holds {_in_words(world, lost)}",
        providers=tuple(lost),
        lost=lost,
    )


def _double(
    world: World, facts: Known, consumer: str, body: Mapping[str, Any]
) -> Iterator[Finding]:
    """A problem if a consumer has allocations on several hosts and is not known to run on all of
    them.
    """
    hosts = world.hosts_of(consumer)
    placed = facts.placed.get(consumer, frozenset())
    right = {root for root in hosts if placed & {root, world.name_of(root)}}
    if len(hosts) < 2 or right == hosts:
        return
    names = ", ".join(sorted(world.name_of(root) for root in hosts))
    wrong = {
        provider: amounts
        for provider, amounts in _amounts(body["allocations"]).items()
        if provider in world.providers
        and provider not in world.sharing
        and world.root_of(provider) not in right
    }
    lost = wrong if right else {}
    if not placed:
        rest = "--placed does not say which is right"
    elif not right:
        rest = f"--placed has it on {', '.join(sorted(placed))}"
    else:
        on = ", ".join(sorted(world.name_of(root) for root in right))
        rest = f"--placed has it on {on}, so {_in_words(world, lost)} is wrong"
    yield Finding(
        kind="double allocation",
        subject=consumer,
        sentence=f"consumer {consumer} has allocations on several hosts, {names}; {rest}",
        providers=tuple(lost),
        lost=lost,
    )


def _of_hosts(world: World, facts: Known, inventories: Amounts) -> Iterator[Finding]:
    providers_in_use = frozenset().union(*world.providers_of.values())
    for uuid in missing_hosts(world, facts):
        tree = world.tree_of(uuid)
        in_use = sum(1 for member in tree if member in providers_in_use)
        lost = {} if in_use else {member: inventories.get(member, {}) for member in tree}
        if in_use:
            rest = f"{in_use} of its providers still have allocations"
        else:
            stock = _in_words(world, {member: has for member, has in lost.items() if has})
            count = f"{len(tree)} providers" if len(tree) > 1 else "1 provider"
            rest = f"{count} with {stock or 'no inventory'}"
        yield Finding(
            kind="provider without host",
            subject=uuid,
            sentence=f"{world.name_of(uuid)} ({uuid}) is not in --hosts; {rest}",
            providers=() if in_use else tuple(tree),
            lost=lost,
        )


def _in_words(world: World, amounts: Amounts) -> str:
    """Amounts by provider, as in `VCPU=2 MEMORY_MB=512 on host-1, VGPU=1 on gpu-1`."""
    words = {
        world.name_of(provider) if provider in world.providers else provider: " ".join(
            f"{name}={amount}" for name, amount in sorted(resources.items())
        )
        for provider, resources in amounts.items()
    }
    return ", ".join(f"{resources} on {name}" for name, resources in sorted(words.items()))


def _amounts(allocations: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """A consumer's allocations, by provider and resource class."""
    return {provider: part["resources"] for provider, part in allocations.items()}


# --- Removing it, and restoring it ----------------------------------------------------------------

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
    after = _amounts(left)
    undo.append({"what": _ALLOCATIONS, "subject": finding.subject, "before": seen, "after": after})
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


# --- Providers ------------------------------------------------------------------------------------


def _delete_tree(service: Service, finding: Finding, undo: UndoFile) -> Outcome:
    """Delete a tree, children first: completely, or not at all as far as other clients allow."""
    listed = service.list_providers(in_tree=finding.subject)
    if not listed:
        return Outcome.NOTHING_TO_DO
    is_as_found = {provider["uuid"] for provider in listed} == {*finding.providers}
    # The service would refuse only the provider that has allocations, after its children are
    # deleted.
    if not is_as_found or any(service.get_part(uuid, "allocations") for uuid in finding.providers):
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
        **{part: service.get_part(uuid, part) for part in _PARTS},
    }


def _restore_provider(service: Service, change: Change) -> Outcome:
    uuid, before = change["subject"], change["before"]
    try:
        now = _whole_provider(service, uuid)
        generation = service.get(provider_path(uuid))["generation"]
    except NotThere:
        created = service.create_provider(uuid, before["name"], before["parent_provider_uuid"])
        generation = created["generation"]
    else:
        if now == before:
            return Outcome.NOTHING_TO_DO
        # A provider with only some of its parts was being restored when something failed.
        if any(now[name] and now[name] != before[name] for name in before):
            return Outcome.CHANGED_SINCE
    for part in _PARTS:
        answer = service.put_part(uuid, part, before[part], generation)
        generation = answer["resource_provider_generation"]
    return Outcome.DONE


_RESTORERS: Final = {_ALLOCATIONS: _restore_allocations, _PROVIDER: _restore_provider}
