# SPDX-License-Identifier: Apache-2.0
"""The answers of berth's own API as values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

#: Amounts by resource class by the UUID of a provider.
Allocations = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which a request fits.

    Attributes:
        host: the UUID of the host.
        allocations: what to claim.
        mappings: by group of the request, the UUIDs of the providers that serve it.
        score: higher is better; None without an order.
    """

    host: str
    allocations: Allocations
    mappings: Mapping[str, Sequence[str]]
    score: float | None

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        return cls(
            host=sent["host"],
            allocations=_allocations(sent["allocations"]),
            mappings=sent["mappings"],
            score=sent["score"]["total"] if "score" in sent else None,
        )


@dataclass(frozen=True, slots=True)
class Fleet:
    """Every provider, as of one state.

    Attributes:
        revision: the state.
        providers: as `GET /berth/v1/fleet` shows them; parents before children.
    """

    revision: str
    providers: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Changes:
    """What has changed since a revision.

    Attributes:
        revision: to continue from.
        events: as `GET /berth/v1/changes` tells them.
    """

    revision: str
    events: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a request fits, or does not.

    Attributes:
        verdict: a word for programs, such as `used_up`.
        summary: one or two sentences for people.
        hosts_that_fit: how many there are.
        impossible: what no host could hold even with nothing used, in sentences.
        answer: everything that the service said: constraints, changes that help, nearest hosts.
    """

    verdict: str
    summary: str
    hosts_that_fit: int
    impossible: tuple[str, ...]
    answer: Mapping[str, Any]

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        impossible = tuple(each["text"] for each in sent.get("impossible", ()))
        return cls(sent["verdict"], sent["summary"], sent["hosts"]["fit"], impossible, sent)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The ways in which a request fits, best first.

    Attributes:
        revision: the state of the database that was searched.
        complete: whether the search came to its end; if not, there may be more.
        more: whether `limit` or `per_host` left candidates out.
        explanations: if nothing fits, and the question asked for it: why, for each alternative.
        warnings: parts of the request without effect.
    """

    candidates: tuple[Candidate, ...]
    revision: str
    complete: bool
    more: bool
    explanations: tuple[Explanation, ...]
    warnings: tuple[Mapping[str, str], ...]

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        explanation = sent.get("explanation")
        return cls(
            candidates=tuple(map(Candidate.of, sent["candidates"])),
            revision=sent["revision"],
            complete=sent["complete"],
            more=sent["more"],
            explanations=() if explanation is None else explanations_of(explanation),
            warnings=tuple(sent["warnings"]),
        )


def explanations_of(sent: Mapping[str, Any]) -> tuple[Explanation, ...]:
    """One explanation, or one for each alternative of the request."""
    return tuple(map(Explanation.of, sent.get("alternatives", (sent,))))


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more of a request fit.

    Attributes:
        count: how many can be placed.
        at_most: no more can.
        hosts: how many hosts fit at least one.
        answer: everything that the service said: what is free and stranded, by resource class.
    """

    count: int
    at_most: int
    hosts: int
    answer: Mapping[str, Any]


class Capacities(dict[str, Capacity]):
    """The capacity of each request and flavor that can be counted.

    Attributes:
        revision: the state of the database that was counted.
        complete: whether counting came to its end; if not, some counts are lower bounds.
        uncounted: what the service said of stored flavors that it cannot count.
        warnings: parts of the question without effect.
    """

    def __init__(self, sent: Mapping[str, Any]) -> None:
        """The value of an answer."""
        flavors: Mapping[str, Mapping[str, Any]] = sent["flavors"]
        super().__init__(
            (name, Capacity(each["count"], each["at_most"], each["hosts"], each))
            for name, each in flavors.items()
            if "count" in each
        )
        self.revision: str = sent["revision"]
        self.complete: bool = sent["complete"]
        self.uncounted = {name: each for name, each in flavors.items() if "count" not in each}
        self.warnings: tuple[Mapping[str, str], ...] = tuple(sent["warnings"])


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConsumer:
    """A consumer to be placed.

    Attributes:
        uuid: the caller's choice; None if there is a name, and the service makes one.
        name: unique within the project.
        generation: of a consumer that gives back what it holds (`Consumer.generation`); None for a
            new one.
    """

    project_id: str
    user_id: str
    name: str | None = None
    uuid: str | None = None
    consumer_type: str = "INSTANCE"
    generation: int | None = None

    def to_json(self) -> dict[str, str | int]:
        """The consumer of a request."""
        members = {
            "uuid": self.uuid,
            "name": self.name,
            "project_id": self.project_id,
            "user_id": self.user_id,
            "consumer_type": self.consumer_type,
            "consumer_generation": self.generation,
        }
        return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a consumer was placed.

    Attributes:
        uuid: of the consumer.
        host: the UUID of the host.
        mappings: by group of the request, the UUIDs of the providers that serve it.
        lease_until: when the service takes it back, with its time zone, UTC; None if never.
        moved_from: the UUID of the host on which it was before, of a call with `replace`.
        request: what it asked for, of `Client.placement`.
        basis: how that is known: `placed`, `flavor`, or `allocations` if it was made from what the
            consumer holds.
    """

    uuid: str
    host: str
    allocations: Allocations
    mappings: Mapping[str, Sequence[str]]
    lease_until: datetime | None = None
    moved_from: str | None = None
    request: Mapping[str, Any] | None = None
    basis: str | None = None

    @classmethod
    def of(cls, uuid: str, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        return cls(
            uuid,
            sent["host"],
            _allocations(sent["allocations"]),
            sent["mappings"],
            _expiry(sent.get("lease")),
            *map(sent.get, ("from", "request", "basis")),
        )


class Placements(tuple[Placement, ...]):
    """The placements of one call, in the order of its consumers.

    Attributes:
        repeated: whether an earlier call with the same body has done it.
        warnings: parts of the call without effect, such as a label that no aggregate has.
    """

    repeated: bool
    warnings: tuple[Mapping[str, str], ...]

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        placements = cls(Placement.of(uuid, each) for uuid, each in sent["placements"].items())
        placements.repeated = sent["repeated"]
        placements.warnings = tuple(sent["warnings"])
        return placements


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of a consumer.

    Attributes:
        consumer: its UUID.
        name: its name within its project, if it has one.
        expires_at: when the service takes back what it holds, with its time zone, UTC.
        seconds_left: the same by the clock of the service.
    """

    consumer: str
    name: str | None
    project_id: str
    user_id: str
    expires_at: datetime
    seconds_left: int

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        return cls(
            consumer=sent["consumer"],
            name=sent["name"],
            project_id=sent["project_id"],
            user_id=sent["user_id"],
            expires_at=datetime.fromisoformat(sent["expires_at"]),
            seconds_left=sent["seconds_left"],
        )


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer that holds something.

    Attributes:
        name: its name within its project, if it has one.
        providers: the name of each provider in `allocations`.
        created_at: with its time zone, UTC; None if unknown.
        lease_until: when the service takes back what it holds, with its time zone, UTC; None if
            never.
    """

    uuid: str
    name: str | None
    project_id: str
    user_id: str
    consumer_type: str
    generation: int
    created_at: datetime | None
    allocations: Allocations
    providers: Mapping[str, str]
    lease_until: datetime | None

    @classmethod
    def of(cls, sent: Mapping[str, Any]) -> Self:
        """The value of an answer."""
        created_at = sent["created_at"]
        return cls(
            uuid=sent["uuid"],
            name=sent["name"],
            project_id=sent["project_id"],
            user_id=sent["user_id"],
            consumer_type=sent["consumer_type"],
            generation=sent["generation"],
            created_at=None if created_at is None else datetime.fromisoformat(created_at),
            allocations=_allocations(sent["allocations"]),
            providers={uuid: each["name"] for uuid, each in sent["allocations"].items()},
            lease_until=_expiry(sent["lease"]),
        )


def _allocations(sent: Mapping[str, Any]) -> Allocations:
    return {uuid: each["resources"] for uuid, each in sent.items()}


def _expiry(lease: Mapping[str, str] | None) -> datetime | None:
    return None if lease is None else datetime.fromisoformat(lease["expires_at"])
