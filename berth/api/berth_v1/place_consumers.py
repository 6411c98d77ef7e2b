# SPDX-License-Identifier: Apache-2.0
"""The consumers of one placement: who they are, and what they have. Source: spec/beyond.md 5.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from uuid import uuid4

from berth.api.berth_v1.place_answers import conflict
from berth.api.berth_v1.place_body import NewConsumer, Wanted
from berth.api.berth_v1.pointed import refused
from berth.api.operations.berth_v1 import codes
from berth.api.request import Services
from berth.model.errors import ConcurrentUpdate, ConsumerGenerationConflict
from berth.model.ids import ClassId, ConsumerUUID, Generation, ProviderId
from berth.model.own_errors import ConsumerNameTaken
from berth.store.consumer_names import named_consumers
from berth.store.placements import Placement, Standing, standings

#: The consumers that a refusal names.
_SHOWN_MAX: Final = 3


class Consumers:
    """The consumers of one call, in the order of its body.

    Raises:
        Refused: 400, two of the consumers are one.
    """

    def __init__(self, services: Services, wanted: Wanted) -> None:
        self._services = services
        self._wanted = wanted
        #: Those of the body, those of the consumers that have the names already, or new ones.
        self.uuids: Sequence[ConsumerUUID] = self._identified()
        #: What they have; empty as long as it does not matter.
        self.standings: Mapping[ConsumerUUID, Standing] = {}

    def __len__(self) -> int:
        return len(self.uuids)

    def __iter__(self) -> Iterator[tuple[ConsumerUUID, NewConsumer]]:
        return zip(self.uuids, self._wanted.consumers, strict=True)

    def look_up(self) -> bool:
        """Look up their names again; whether they are others now."""
        before, self.uuids = self.uuids, self._identified()
        return self.uuids != before

    def read(self) -> None:
        """Read what they have."""
        self.standings = standings(self._services.database, self.uuids)

    @property
    def placed_before(self) -> dict[ConsumerUUID, tuple[Standing, Placement]]:
        """What they still have of an earlier call with the same body; empty if that is not all."""
        placed = {
            uuid: (standing, standing.placement)
            for uuid, standing in self.standings.items()
            if standing.placement and standing.placement.digest == self._wanted.digest
        }
        return placed if len(placed) == len(self) else {}

    def check(self) -> None:
        """Check that none has anything yet, or that those to be replaced are as the body says.

        Raises:
            Refused: 409.
            ConsumerGenerationConflict: one is at another generation.
        """
        if self._wanted.replaces:
            for uuid, each in self:
                if (actual := self.standings[uuid].generation) != each.generation:
                    raise _is_at_another(uuid, each, actual)
            return
        holding = {uuid: each for uuid, each in self if self.standings[uuid].generation is not None}
        if holding:
            names = ", ".join(_called(*each) for each in list(holding.items())[:_SHOWN_MAX])
            others = " and others" if len(holding) > _SHOWN_MAX else ""
            raise conflict(
                self._services,
                codes.CONSUMER_HOLDS,
                f"Consumer {names} holds something already."
                if len(holding) == 1
                else f"Consumers {names}{others} hold something already.",
                "Use replace to move them, or other uuids or names for new consumers.",
                consumers=[*holding],
            )

    def check_names(self) -> None:
        """Check that the names are free, as a claim would.

        Raises:
            ConsumerNameTaken: another consumer has one, and keeps it.
        """
        wanted = {_name_of(each): uuid for uuid, each in self if each.name is not None}
        own = dict(self)
        for (project, name), holder in self._named(wanted).items():
            losing = own.get(holder)
            keeps = losing is None or (losing.name is None and losing.project_id == project)
            if holder != wanted[project, name] and keeps:
                raise ConsumerNameTaken(project, name, holder)

    def given_back(self) -> Counter[tuple[ProviderId, ClassId]]:
        """What those have that are to be replaced, as a change of what is used."""
        given_back: Counter[tuple[ProviderId, ClassId]] = Counter()
        if self._wanted.replaces:
            for standing in self.standings.values():
                given_back.subtract(standing.used)
        return given_back

    def _identified(self) -> list[ConsumerUUID]:
        consumers = self._wanted.consumers
        named = self._named([_name_of(each) for each in consumers if each.uuid is None])
        uuids = [
            each.uuid or named.get(_name_of(each)) or ConsumerUUID(str(uuid4()))
            for each in consumers
        ]
        if len(set(uuids)) < len(uuids):
            raise refused("/consumers", "names a consumer by its uuid and by its name")
        return uuids

    def _named(self, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], ConsumerUUID]:
        return named_consumers(self._services.database, names) if names else {}


def _name_of(consumer: NewConsumer) -> tuple[str, str]:
    return consumer.project_id, str(consumer.name)


def _called(uuid: ConsumerUUID, consumer: NewConsumer) -> str:
    """What the body calls a consumer."""
    return uuid if consumer.name is None else "/".join(_name_of(consumer))


def _is_at_another(
    uuid: ConsumerUUID, consumer: NewConsumer, actual: Generation | None
) -> ConcurrentUpdate:
    """The error of a consumer at another generation than that of the body."""
    if consumer.uuid is not None:
        return ConsumerGenerationConflict(uuid, seen=consumer.generation, actual=actual)
    project, name = _name_of(consumer)
    if actual is None:
        return ConcurrentUpdate(f"Project {project} has no consumer named {name}.")
    return ConcurrentUpdate(
        f"Consumer {project}/{name} is at generation {actual}, not {consumer.generation}.",
        "Read it again and retry.",
    )
