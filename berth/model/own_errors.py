# SPDX-License-Identifier: Apache-2.0
"""The errors about what only berth has: labels, flavors, drains, names of consumers, edits of
trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from berth.model.bounds import DRAINS_MAX, FLAVORS_MAX
from berth.model.drain import DrainName
from berth.model.errors import BerthError, Conflict, Invalid, NotFound
from berth.model.ids import AggregateUUID, ConsumerUUID, ProviderUUID


class LabelTaken(Conflict):
    """Another aggregate has this name."""

    def __init__(self, name: str, aggregate: AggregateUUID) -> None:
        super().__init__(f"Aggregate {aggregate} has the name {name} already.")
        self.name = name
        self.aggregate = aggregate


class ConsumerNameTaken(Conflict):
    """Another consumer of the project has this name."""

    def __init__(self, project: str, name: str, consumer: ConsumerUUID) -> None:
        super().__init__(
            f"Project {project} has a consumer named {name} already, {consumer}.",
            "Choose another name, or release that consumer first.",
        )


class TooManyFlavors(Invalid):
    """The database has as many flavors as it may have."""

    def __init__(self) -> None:
        at_most = f"There are {FLAVORS_MAX:,} flavors already, the bound max_flavors."
        super().__init__(at_most, "Delete one first.")


class DrainNotFound(NotFound):
    """There is no drain of this name."""

    def __init__(self, name: DrainName) -> None:
        super().__init__(f"There is no drain {name}.")


class TreeChanged(BerthError):
    """A tree is not as the client has seen it."""

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"The tree of {reference} is not the one that the request expects.",
            "Read it again, and decide again.",
        )


class TreeInvalid(Invalid):
    """A wanted tree cannot be.

    Attributes:
        steps: into the body, to the member at fault.
        is_unknown: whether the member names a provider that does not exist.
    """

    def __init__(
        self, message: str, steps: tuple[str | int, ...], *, is_unknown: bool = False
    ) -> None:
        super().__init__(message)
        self.steps = steps
        self.is_unknown = is_unknown


class UnknownNames(Invalid):
    """A wanted tree names resource classes or traits that do not exist.

    Attributes:
        part: of a provider, that names them.
        names: each with a provider that names it.
    """

    def __init__(
        self, part: Literal["inventories", "traits"], names: Mapping[str, ProviderUUID]
    ) -> None:
        super().__init__(f"These {part} name what does not exist: {', '.join(names)}.")
        self.part = part
        self.names = names


class TooManyDrains(Invalid):
    """The database has as many drains as it may have."""

    def __init__(self) -> None:
        at_most = f"There are {DRAINS_MAX:,} drains already, the bound max_drains."
        super().__init__(at_most, "Delete one first.")
