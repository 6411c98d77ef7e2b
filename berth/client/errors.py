# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a request: the service refused it, or did not answer as it should."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from berth.hosts import errors as hosts
from berth.hosts.errors import Unreachable
from berth.model.refusals import Conflict, Forbidden, NoOwnApi, NotThere, Refused

__all__ = ["Conflict", "Incomplete", "NoOwnApi", "NotThere", "Refused", "Unreachable"]

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


_KINDS: Final = {403: Forbidden, 404: NotThere, 409: Conflict}


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
    kind = _KINDS.get(refusal.status, Refused)
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
