# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a host and the service; each class says what became of the host's tree.

Nothing is told by None or False: a call either did what it promises or raises one of these.
"""

from __future__ import annotations

from collections.abc import Sequence


class ComputeError(Exception):
    """The ancestor of all that this package raises."""


class ReshapeNeeded(ComputeError):
    """A driver's signal: what it has to say moves inventory that is in use.

    It is to be called again with the allocations, where that is allowed: at start-up.
    """


class ReshapeFailed(ComputeError):
    """The tree could not take its new shape; the service holds the old one, whole."""


class BadProviderTree(ComputeError):
    """A driver's tree, or its allocations, make no sense; nothing was sent."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        #: Each fault as a sentence.
        self.faults = tuple(faults)


class BadConfiguration(ComputeError):
    """What an operator wrote cannot be meant; nothing of it is in force."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        #: Each fault as a sentence that names the file and the place in it.
        self.faults = tuple(faults)


class HostUnreadable(ComputeError):
    """The host does not tell what it has at the moment; trying again may help."""


class Unreachable(ComputeError):
    """The service does not answer, or says that it cannot at the moment; trying again may help."""


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


class NotHeld(ComputeError):
    """A consumer does not hold what was to be changed or taken from it; nothing was sent."""
