# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a request: the service refused it, or did not answer as it should."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from berth.hosts import errors as hosts
from berth.hosts.errors import Unreachable

__all__ = ["Conflict", "Incomplete", "NoOwnApi", "NotThere", "Refused", "Unreachable"]

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Refused(Exception):
    """The service refused a request, and changed nothing.

    Its text is the service's explanation, in one sentence or a few.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int,
        code: str = "",
        error: Mapping[str, Any] = _NOTHING,
        explanation: Mapping[str, Any] | None = None,
        warnings: Iterable[Mapping[str, str]] = (),
    ) -> None:
        super().__init__(message)
        #: The HTTP status.
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


class NotThere(Refused):
    """What the request names does not exist (404)."""


class NoOwnApi(NotThere):
    """The service is OpenStack Placement, or an older berth: it does not have this route."""


class Conflict(Refused):
    """The request conflicts with the state of the fleet, or another client was faster (409)."""


class Incomplete(Exception):
    """A list ended before its last line: the connection broke. Ask again."""


def refusal_of(refusal: hosts.Refused, path: str, *, is_own_route: bool) -> Refused:
    """The error of a request that the service refused.

    Args:
        path: of the request.
        is_own_route: whether every release with berth's own API has this path.
    """
    if refusal.status == 404 and is_own_route:
        return NoOwnApi(
            f"this service does not have {path}: it is older than this program, or is OpenStack "
            "Placement",
            status=refusal.status,
        )
    kind = {404: NotThere, 409: Conflict}.get(refusal.status, Refused)
    return kind(
        sentence(refusal.detail),
        status=refusal.status,
        code=refusal.code,
        error=next(iter(refusal.body.get("errors", ())), _NOTHING),
        explanation=refusal.body.get("explanation"),
        warnings=refusal.body.get("warnings", ()),
    )


#: The sentence that begins each message of the service and repeats its status in words.
_END_OF_PREAMBLE: Final = "\n\n"


def sentence(detail: str) -> str:
    """A message of the service on one line, without the words for its status."""
    _, ends, message = detail.partition(_END_OF_PREAMBLE)
    words = " ".join((message if ends and message.strip() else detail).split())
    return words.replace(". ;", ";").removesuffix(".")
