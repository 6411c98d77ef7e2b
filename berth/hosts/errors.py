# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a host and the service; each class says what became of the host's tree.

Nothing is told by None or False: a call either did what it promises or raises one of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

#: What consumers really have of a host, by their uuids and by resource class.
Truth = Mapping[str, Mapping[str, int]]


class ComputeError(Exception):
    """The ancestor of all that this package raises."""


class ReshapeNeeded(ComputeError):
    """A driver's signal: what it has to say moves inventory that is in use.

    It is to be called again with the allocations, where that is allowed: at start-up.

    Args:
        why: for those who read the log.
        truth: consumers that have more of the host than the service knows of, and all that they
            have of those resource classes. Their allocations grow to it, and no others. Once the
            driver has the allocations it may take out of it what there is no room for.
    """

    def __init__(self, *why: str, truth: Truth | None = None) -> None:
        super().__init__(*why)
        self.truth: Truth = truth or {}


class HealingNeeded(ReshapeNeeded):
    """A driver's signal: consumers have more of the host than the service knows of.

    It is to be called again with the allocations, and adds to them what is missing. Nothing moves
    besides, so that this is allowed in every pass.
    """

    def __init__(self, truth: Truth) -> None:
        super().__init__("consumers have more than the service knows of", truth=truth)


class RestoreNeeded(ReshapeNeeded):
    """A signal of the way back: consumers hold again what they held before.

    Args:
        truth: those that hold less then, and all that they then hold of these resource classes.
    """

    def __init__(self, truth: Truth) -> None:
        super().__init__("what consumers held is given back to them", truth=truth)


class ReshapeFailed(ComputeError):
    """The tree could not take its new shape; the service holds the old one, whole."""


class BadProviderTree(ComputeError):
    """A driver's tree, or its allocations, make no sense; nothing was sent."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        #: Each fault as a sentence.
        self.faults = tuple(faults)


class DriverFailed(ComputeError):
    """A driver made a mistake of its own; what it raised is the cause, and nothing was sent."""

    def __init__(self, driver: str, error: Exception) -> None:
        super().__init__(f"the driver {driver} failed: {type(error).__name__}: {error}")


class BadConfiguration(ComputeError):
    """What an operator wrote cannot be meant; nothing of it is in force."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        #: Each fault as a sentence that names the file and the place in it.
        self.faults = tuple(faults)


class StateDirInUse(ComputeError):
    """Another program writes what this host's agent keeps.

    Args:
        holder: its process, empty where that is not known.
    """

    def __init__(self, state_dir: Path, holder: str) -> None:
        process = f" (process {holder})" if holder else ""
        super().__init__(
            f"another berth agent{process} uses {state_dir}: stop it, or give this one a "
            f"state_dir of its own"
        )


class HostUnreadable(ComputeError):
    """The host does not tell what it has at the moment; trying again may help."""


class Unreachable(ComputeError):
    """The service does not answer, or fails at the moment; trying again may help."""


class Refused(ComputeError):
    """The service refused a request.

    The message names the request, the status, the service's code and what it said.
    """

    def __init__(self, request: str, *, status: int, code: str, detail: str) -> None:
        said = " ".join(detail.split())
        super().__init__(f"{request} was answered {status}{f' {code}' if code else ''}: {said}")
        self.request = request
        self.status = status
        self.code = code
        self.detail = detail


class Conflict(Refused):
    """Somebody else has changed a provider or a consumer meanwhile: read again, then decide."""


class InventoryInUse(Refused):
    """Inventory that somebody holds a part of was to go."""


class NameTaken(Refused):
    """Another provider has the name, under another uuid."""


class NotThere(Refused):
    """What the request is about does not exist."""


class TooOld(Refused):
    """The service does not speak the microversion that was asked for; 1.30 is the least of all."""


class NotHeld(ComputeError):
    """A consumer does not hold what was to be changed or taken from it; nothing was sent."""


def is_mistake(error: Exception) -> bool:
    """Whether a program is wrong, so that its author wants to know where that arose."""
    return isinstance(error, DriverFailed) or not isinstance(error, ComputeError)
