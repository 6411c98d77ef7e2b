# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a service, by what is known of the world outside of it: pure, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.hosts.audit.world import UNTYPED, Amounts, Consumers, World

MIGRATION = "MIGRATION"

#: The type of consumers where nobody was asked for his.
ANY_TYPE = "any"


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the world; of what is not told, nothing is judged."""

    #: By the type of consumers, the uuids of all that live.
    living: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: Names and uuids of all hosts that there are; None: not told.
    hosts: frozenset[str] | None = None
    #: By consumer, the names or uuids of the hosts that it is on, or moves between.
    placed: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that should not be."""

    #: `orphaned consumer`, `leaked migration`, `double allocation` or `provider without host`.
    kind: str
    #: The uuid of the consumer, or of the root provider.
    subject: str
    #: The whole of it, for people.
    sentence: str
    #: Of a consumer: the providers of whom it should hold nothing. Of a root: its whole tree,
    #: parents first. Empty: what is right is not known, and nothing can be done.
    providers: tuple[str, ...]
    #: What would be removed: by provider, the amounts of its allocations, or of its inventories.
    lost: Amounts

    @property
    def is_about_a_consumer(self) -> bool:
        """Whether the subject is a consumer, and not a provider."""
        return self.kind != "provider without host"

    @property
    def can_be_fixed(self) -> bool:
        """Whether it is known what would be right."""
        return bool(self.providers)


def suspects(world: World, known: Known) -> list[str]:
    """The consumers that have to be looked at: on no list of who lives, or on several hosts."""
    living = frozenset().union(*known.living.values())
    return [
        consumer
        for consumer in sorted(world.held)
        if (known.living and consumer not in living) or len(world.hosts_of(consumer)) > 1
    ]


def missing_hosts(world: World, known: Known) -> list[str]:
    """The hosts of a service that are not on the list of all hosts."""
    if known.hosts is None:
        return []
    return [host for host in world.hosts() if not {host, world.name_of(host)} & known.hosts]


def find(world: World, consumers: Consumers, known: Known, inventories: Amounts) -> list[Finding]:
    """What is wrong, consumers first, in the order of their uuids.

    Args:
        consumers: the suspects.
        inventories: those of the trees of the missing hosts.
    """
    return [*_of_consumers(world, consumers, known), *_of_hosts(world, known, inventories)]


def excess(world: World, findings: Iterable[Finding]) -> str | None:
    """A sentence where so much would be removed that a list has more likely been cut short: more
    than a tenth of the hosts, or of the consumers, and more than one."""
    findings = list(findings)
    consumers = sum(finding.is_about_a_consumer for finding in findings)
    for number, total, what in (
        (len(findings) - consumers, len(world.hosts()), "hosts"),
        (consumers, len(world.held), "consumers"),
    ):
        if number > max(1, total // 10):
            return f"{number} of {total} {what}"
    return None


def unjudged(world: World, consumers: Consumers, known: Known) -> dict[str, int]:
    """How many consumers of each type nothing is known of."""
    if not known.living:
        return {ANY_TYPE: len(world.held)} if world.held else {}
    kinds = (body["consumer_type"] for body in consumers.values())
    return dict(Counter(kind for kind in kinds if kind not in known.living))


def _of_consumers(world: World, consumers: Consumers, known: Known) -> Iterator[Finding]:
    for consumer, body in sorted(consumers.items()):
        kind = body["consumer_type"]
        living = known.living.get(kind)
        if living is not None and consumer not in living:
            yield _gone(world, consumer, body)
        elif kind != MIGRATION:
            yield from _double(world, known, consumer, body)


def _gone(world: World, consumer: str, body: Mapping[str, Any]) -> Finding:
    kind, lost = body["consumer_type"], _amounts(body)
    is_migration = kind == MIGRATION
    what = "leaked migration" if is_migration else "orphaned consumer"
    who = what if is_migration or kind == UNTYPED else f"{what} ({kind})"
    return Finding(
        kind=what,
        subject=consumer,
        sentence=f"{who} {consumer} still holds {_in_words(world, lost)}",
        providers=tuple(lost),
        lost=lost,
    )


def _double(
    world: World, known: Known, consumer: str, body: Mapping[str, Any]
) -> Iterator[Finding]:
    """A consumer that holds of several hosts, unless it is known to be on all of them."""
    hosts = world.hosts_of(consumer)
    placed = known.placed.get(consumer, frozenset())
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


def _of_hosts(world: World, known: Known, inventories: Amounts) -> Iterator[Finding]:
    held_of = frozenset().union(*world.held.values())
    for uuid in missing_hosts(world, known):
        tree = world.tree_of(uuid)
        in_use = sum(1 for one in tree if one in held_of)
        lost = {} if in_use else {one: inventories.get(one, {}) for one in tree}
        if in_use:
            rest = f"{in_use} of its providers still have allocations"
        else:
            stock = _in_words(world, {one: has for one, has in lost.items() if has})
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
    """What a consumer holds, as the service shows it."""
    return {provider: held["resources"] for provider, held in body["allocations"].items()}


def _in_words(world: World, amounts: Amounts) -> str:
    """Amounts by provider, as in `VCPU=2 MEMORY_MB=512 on host-1, VGPU=1 on gpu-1`."""
    words = {
        world.name_of(provider) if provider in world.providers else provider: " ".join(
            f"{name}={amount}" for name, amount in sorted(held.items())
        )
        for provider, held in amounts.items()
    }
    return ", ".join(f"{held} on {name}" for name, held in sorted(words.items()))
