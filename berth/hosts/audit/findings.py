# SPDX-License-Identifier: Apache-2.0
"""Compares the state of a service with the operator's lists: pure, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.hosts.audit.world import UNTYPED, Amounts, Consumers, World

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
    and
    more than a tenth of the hosts or of the consumers. A list was more likely cut short then.
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
    kind, lost = body["consumer_type"], _amounts(body)
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
        for provider, amounts in _amounts(body).items()
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


def _amounts(body: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """A consumer's allocations, by provider and resource class."""
    return {provider: part["resources"] for provider, part in body["allocations"].items()}


def _in_words(world: World, amounts: Amounts) -> str:
    """Amounts by provider, as in `VCPU=2 MEMORY_MB=512 on host-1, VGPU=1 on gpu-1`."""
    words = {
        world.name_of(provider) if provider in world.providers else provider: " ".join(
            f"{name}={amount}" for name, amount in sorted(resources.items())
        )
        for provider, resources in amounts.items()
    }
    return ", ".join(f"{resources} on {name}" for name, resources in sorted(words.items()))
