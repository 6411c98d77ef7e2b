# SPDX-License-Identifier: Apache-2.0
"""What a service refuses to a client, and to a command, which ends with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any, Final, Self

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Refused(Exception):
    """The service refused a request, and changed nothing.

    Its text is the service's explanation, in one sentence or a few.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        code: str = "",
        error: Mapping[str, Any] = _NOTHING,
        explanation: Mapping[str, Any] | None = None,
        warnings: Iterable[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(message)
        #: The HTTP status; 0 if no answer said so, as an earlier one sufficed to see it.
        self.status = status
        #: The API's code of the error, such as `berth.name.unknown`; empty if it has none.
        self.code = code
        #: The JSON pointer to the member of the request at fault; None if it has none.
        self.pointer: str | None = error.get("pointer")
        #: Names that exist, if the request has one that does not.
        self.did_you_mean: tuple[str, ...] = tuple(error.get("did_you_mean", ()))
        #: Why a request does not fit, as `explain` answers it; None if that is not the reason.
        self.explanation = explanation
        #: Parts of a request that does not fit that have no effect, such as unknown hosts.
        self.warnings = tuple(warnings)

    def saying(self, message: str) -> Self:
        """The same refusal in other words."""
        other = copy(self)
        other.args = (message,)
        return other


class Forbidden(Refused):
    """The caller's role does not allow the request (403)."""


class NotThere(Refused):
    """What the request names does not exist (404)."""


class NoOwnApi(NotThere):
    """The service is OpenStack Placement, or an older berth: it does not have this route."""


class Conflict(Refused):
    """The request conflicts with the state of the fleet, or another client was faster (409)."""
