# SPDX-License-Identifier: Apache-2.0
"""The errors about what only berth has: labels, flavors, drains, names of consumers, edits of
trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from berth.model.errors import BerthError, Conflict, Invalid, NotFound
from berth.model.ids import AggregateUUID, ConsumerUUID, ProviderUUID
from berth.model.named import DrainName


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


class TooMany(Invalid):
    """The database has as many flavors or drains as it may have."""

    def __init__(self, noun: str, at_most: int) -> None:
        bound = f"There are {at_most:,} {noun}s already, the bound max_{noun}s."
        super().__init__(bound, "Delete one first.")


class AlreadyThere(BerthError):
    """A request that only creates names what exists."""

    def __init__(self, noun: str, name: str) -> None:
        super().__init__(f"There is a {noun} {name} already.")


class OutsideHost(BerthError):
    """A caller that is bound to a host asks for a provider outside the tree of that host.

    Args:
        root: the name of the root of the provider's tree.
    """

    def __init__(self, host: str, provider: str, *, root: str) -> None:
        where = f"in the tree of {root}" if root != provider else "the root of another tree"
        super().__init__(
            f"These credentials are bound to the host {host}, and provider {provider} is {where}.",
            f"They may read and change the tree whose root is {host}, and nothing else.",
        )


class NotOfHost(BerthError):
    """A caller that is bound to a host asks for more than that host."""

    def __init__(self, host: str, hint: str) -> None:
        super().__init__(
            f"These credentials are bound to the host {host}, and the request is about others too.",
            hint,
        )


class AggregateRefused(BerthError):
    """A caller that is bound to a host may not put it into an aggregate."""

    def __init__(self, host: str, aggregate: str, sharing: str) -> None:
        super().__init__(
            f"These credentials are bound to the host {host}, and may not put it into aggregate "
            f"{aggregate}, through which provider {sharing} shares its resources.",
            "An operator can allow that in [berth]agent_aggregates.",
        )


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
        did_you_mean: if the member names a provider that does not exist: those with similar names.
    """

    def __init__(
        self,
        message: str,
        steps: tuple[str | int, ...],
        *,
        did_you_mean: tuple[str, ...] | None = None,
    ) -> None:
        super().__init__(message)
        self.steps = steps
        self.did_you_mean = did_you_mean


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
