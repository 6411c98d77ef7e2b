# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between a host and the service; each class says what happened to the tree.

No call returns None or False for a failure: it either does what it promises or raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

#: What consumers actually use of a host, by consumer UUID and resource class.
ActualUsage = Mapping[str, Mapping[str, int]]


class ComputeError(Exception):
    """The base class of everything that this package raises."""


class ReshapeNeeded(ComputeError):
    """A driver's signal: its tree moves inventory that is in use.

    The tracker calls the driver again with the allocations, if moving is allowed (at start-up).

    Args:
        why: for the log.
        actual_usage: consumers that use more of the host than the service has allocated to them,
            with their complete usage of those resource classes. Their allocations grow to it; no
            others do. Once the driver has the allocations, it may remove what does not fit.
    """

    def __init__(self, *why: str, actual_usage: ActualUsage | None = None) -> None:
        super().__init__(*why)
        self.actual_usage = actual_usage or {}


class HealingNeeded(ReshapeNeeded):
    """A driver's signal: consumers use more of the host than the service has allocated to them.

    The tracker calls the driver again with the allocations, and the driver adds what is missing.
    Nothing else moves, so this is allowed in every pass.
    """

    def __init__(self, actual_usage: ActualUsage | None = None) -> None:
        super().__init__("consumers use more than is allocated to them", actual_usage=actual_usage)


class RestoreNeeded(ReshapeNeeded):
    """The signal of an undo: consumers get back the allocations that they had before.

    Args:
        actual_usage: the consumers whose allocations shrink, with all that they then have of these
            resource classes.
    """

    def __init__(self, actual_usage: ActualUsage) -> None:
        super().__init__("earlier allocations are restored", actual_usage=actual_usage)


class ReshapeFailed(ComputeError):
    """The tree could not be reshaped; the service still has the old tree, complete."""


class BadProviderTree(ComputeError):
    """A driver's tree, or its allocations, are invalid; nothing was sent."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("; ".join(faults))
        #: Each fault as a sentence.
        self.faults = tuple(faults)


class DriverFailed(ComputeError):
    """A driver raised an error of its own, which is the cause; nothing was sent."""

    def __init__(self, driver: str, error: Exception) -> None:
        super().__init__(f"the driver {driver} failed: {type(error).__name__}: {error}")


class BadConfiguration(ComputeError):
    """The configuration is invalid; none of it takes effect."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        #: Each fault as a sentence that names the file and the place in it.
        self.faults = faults


class StateDirInUse(ComputeError):
    """Another process uses the agent's state directory.

    Args:
        holder: its process ID, empty if unknown.
    """

    def __init__(self, state_dir: Path, holder: str) -> None:
        process = f" (process {holder})" if holder else ""
        super().__init__(
            f"another berth agent{process} uses {state_dir}: stop it, or give this one its own "
            f"state_dir"
        )


class OtherMachine(ComputeError):
    """The agent's state was made on another machine.

    Args:
        name: of the node that this machine reports.
    """

    def __init__(self, state_dir: Path, name: str) -> None:
        super().__init__(
            f"the state in {state_dir} belongs to the machine that reports the host {name}: if "
            f"this machine was made from its image, delete {state_dir} here, and it becomes a host "
            "of its own; if it replaces that machine, or is that machine under another name, run "
            "`berth agent adopt --take-over` here"
        )


class HostUnreadable(ComputeError):
    """The host cannot be examined at the moment; trying again may help."""


class Unreachable(ComputeError):
    """The service does not answer, or fails at the moment; trying again may help."""


class Refused(ComputeError):
    """The service refused a request.

    The message contains the request, the status, the error code and the service's explanation.
    """

    def __init__(
        self,
        request: str,
        *,
        detail: str,
        status: int = 200,
        code: str = "",
        body: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        explanation = " ".join(detail.split())
        super().__init__(
            f"{request} was answered {status}{f' {code}' if code else ''}: {explanation}"
        )
        self.status = status
        self.code = code
        #: What the service says, as it is laid out.
        self.detail = detail
        #: The body, if it is the service's.
        self.body = body


class Conflict(Refused):
    """Another client changed a provider or a consumer: read it again, then decide."""


class InventoryInUse(Refused):
    """The request would remove inventory that has allocations."""


class NameTaken(Refused):
    """Another provider, with another UUID, has the name."""


class NotThere(Refused):
    """The subject of the request does not exist."""


class TooOld(Refused):
    """The service does not support the microversion; at least 1.30 is required."""


class NotHeld(ComputeError):
    """A consumer does not have the allocation that was to be reduced; nothing was sent."""


def is_mistake(error: Exception) -> bool:
    """Whether an error is a bug in a program, so that its traceback belongs in the log."""
    return isinstance(error, DriverFailed) or not isinstance(error, ComputeError)


def some_of(names: Iterable[str], most: int) -> str:
    """List some names, and the number of the others."""
    listed = list(names)
    few = ", ".join(listed[:most])
    return few if len(listed) <= most else f"{few} and {len(listed) - most} more"
