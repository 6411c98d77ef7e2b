# SPDX-License-Identifier: Apache-2.0
"""What is wrong in a service, by what is known of the world outside of it: pure, no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.compute.audit.world import UNTYPED, Consumers, World

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

    #: `gone consumer`, `leaked migration`, `double allocation` or `provider without host`.
    kind: str
    #: The uuid of the consumer, or of the root provider.
    subject: str
    #: The whole of it, for people.
    sentence: str
    #: Of a consumer: the providers of whom it should hold nothing. Of a root: its whole tree,
    #: parents first. Empty: what is right is not known, and nothing can be done.
    providers: tuple[str, ...]

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


def find(world: World, consumers: Consumers, known: Known) -> list[Finding]:
    """What is wrong, consumers first, in the order of their uuids.

    Args:
        consumers: the suspects.
    """
    return [*_of_consumers(world, consumers, known), *_of_hosts(world, known)]


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
    kind, held = body["consumer_type"], body["allocations"]
    where = ", ".join(sorted(world.name_of(one) for one in held if one in world.providers))
    who = "consumer" if kind == UNTYPED else kind
    return Finding(
        kind="leaked migration" if kind == MIGRATION else "gone consumer",
        subject=consumer,
        sentence=f"{who} {consumer} is gone, and still holds of {where}",
        providers=tuple(held),
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
    if not placed:
        rest = "it is not known which is right"
    elif not right:
        rest = f"and is on {', '.join(sorted(placed))}"
    else:
        rest = f"and is on {', '.join(sorted(world.name_of(root) for root in right))}"
    wrong = [
        provider
        for provider in body["allocations"]
        if provider in world.providers
        and provider not in world.sharing
        and world.root_of(provider) not in right
    ]
    yield Finding(
        kind="double allocation",
        subject=consumer,
        sentence=f"consumer {consumer} holds of several hosts, {names}; {rest}",
        providers=tuple(wrong) if right else (),
    )


def _of_hosts(world: World, known: Known) -> Iterator[Finding]:
    if known.hosts is None:
        return
    held_of = frozenset().union(*world.held.values())
    for uuid, provider in sorted(world.providers.items()):
        is_host = uuid == provider["root_provider_uuid"] and uuid not in world.sharing
        if not is_host or {uuid, provider["name"]} & known.hosts:
            continue
        tree = world.tree_of(uuid)
        in_use = sum(1 for one in tree if one in held_of)
        rest = f", and {in_use} of its providers are held of" if in_use else ""
        yield Finding(
            kind="provider without host",
            subject=uuid,
            sentence=f"there is no host for {provider['name']} ({uuid}){rest}",
            providers=() if in_use else tuple(tree),
        )
