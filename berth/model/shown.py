# SPDX-License-Identifier: Apache-2.0
"""Values that answers show as they are.

Each is written once. Its members are in the order in which JSON has them, and `Annotated` says of
each what its values are and, as a text, what it means; `berth.api.struct_schema` makes its schema
of that. A member that an answer may lack is `Sometimes`, and lacks it where it is `UNSET`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from berth.model.ids import ProviderUUID
from berth.model.names import CLASS_NAME_PATTERN, NAME_LENGTH_MAX

__all__ = ["UNSET"]

T = TypeVar("T")

#: A member that is not always there.
Sometimes: TypeAlias = T | UnsetType

Count = Annotated[int, Meta(ge=0)]
#: A project, a user.
ExternalId = Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH_MAX)]
ProviderName = Annotated[str | None, "null in old data only."]
#: A JSON pointer.
Pointer = Annotated[str, "The JSON pointer into `request`."]
ClassName = Annotated[str, Meta(pattern=CLASS_NAME_PATTERN.replace("$", r"\Z"))]
#: Allocated amounts, and sums of them, by resource class.
Amounts = dict[ClassName, Annotated[int, Meta(ge=1)]]
Sums = dict[ClassName, Count]
#: The key of an object.
ProviderKey = Annotated[ProviderUUID, Meta(pattern=r"^[0-9a-fA-F-]{36}\Z")]

#: Instead of the schema that follows from a type: later versions may have other values.
TEXT: Final[dict[str, Any]] = {"type": "string"}
TIME: Final[dict[str, Any]] = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Final[dict[str, Any]] = {**TIME, "type": ["string", "null"]}
EXPIRES_AT: Final[dict[str, Any]] = {
    **TIME,
    "description": "When berth releases the consumer, at the next sweep.",
}


class Shown(msgspec.Struct):
    """An object of JSON; nothing changes it once it is part of an answer."""

    #: The name under which the document has its schema; "" if that stands wherever it is used.
    component: ClassVar[str] = ""


class NamedProvider(Shown):
    """A provider with its name."""

    uuid: ProviderUUID
    name: ProviderName


class Warned(Shown):
    """What a request has without effect."""

    component = "Warning"

    code: Annotated[
        str,
        "`unknown_provider`, `unknown_aggregate`, `unknown_drain`, `unknown_label`,"
        " `limit_ignored`, `relation_without_effect`, `request_unknown`; there may be others in"
        " later versions.",
    ]
    at: Annotated[str, "The JSON pointer into the request."]
    reference: Sometimes[str] = UNSET


class Lease(Shown):
    """How long a consumer may hold what it holds."""

    expires_at: Annotated[str, EXPIRES_AT]

    @classmethod
    def until(cls, moment: datetime | None) -> Lease | None:
        """The lease that expires at a time of the database; None for none."""
        return None if moment is None else cls(shown_time(moment))


#: The schema of the lease of a consumer that may have none.
LEASE: Final[dict[str, Any]] = {
    "type": ["object", "null"],
    "properties": {"expires_at": EXPIRES_AT},
    "required": ["expires_at"],
    "description": "When berth releases it; null without a lease.",
}
LeaseOrNull = Annotated[Lease | None, LEASE]


def shown_time(moment: datetime) -> str:
    """A time of the database, with seconds, as RFC 3339 writes it."""
    return f"{moment.replace(microsecond=0).isoformat()}Z"
