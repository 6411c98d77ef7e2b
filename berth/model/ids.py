# SPDX-License-Identifier: Apache-2.0
"""Identities: uuids of the API, row ids of the database, generations.

A uuid is text in canonical form, lower-case and dashed. The parsers below convert every spelling
that the API accepts to that form, once, at the edge; all layers below compare uuids as strings.
"""

import re
from typing import Final, NewType
from uuid import UUID

ProviderUUID = NewType("ProviderUUID", str)
ConsumerUUID = NewType("ConsumerUUID", str)
AggregateUUID = NewType("AggregateUUID", str)

ProviderId = NewType("ProviderId", int)
ClassId = NewType("ClassId", int)
TraitId = NewType("TraitId", int)
AggregateId = NewType("AggregateId", int)

#: The optimistic lock: counts the changes of a provider or a consumer.
Generation = NewType("Generation", int)

_DASHED: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_THIRTY_SIX: Final = re.compile(r"[0-9a-fA-F-]{36}")
_HEX_DIGITS: Final = re.compile(r"[0-9a-fA-F]{32}")


def parse_uuid_lax(text: str) -> str | None:
    """The canonical form of a uuid in any spelling that Python accepts, or None.

    Dashes may be missing or in other places, letters may have either case, and braces or a
    `urn:uuid:` prefix are allowed; whitespace and anything else is not.
    Source: spec/rest-api.md 1.9, "lax".
    """
    if _DASHED.fullmatch(text):
        return text  # nearly every uuid has this form
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return str(UUID(bare)) if _HEX_DIGITS.fullmatch(bare) else None


def common_spellings(uuid: str) -> tuple[str, ...]:
    """The canonical form of a uuid, and the other forms that clients write, without duplicates.

    Python's `UUID.hex` has no dashes; some tools print upper case.
    """
    undashed = uuid.replace("-", "")
    return tuple(dict.fromkeys((uuid, undashed, uuid.upper(), undashed.upper())))


def parse_uuid_36(text: str) -> str | None:
    """The canonical form of 36 hexadecimal digits and dashes, or None.

    Text that matches but is not a uuid (36 dashes, for example) is only converted to lower case:
    it may identify a row in an old database, and otherwise matches nothing.
    Source: spec/rest-api.md 1.9, "36".
    """
    if not _THIRTY_SIX.fullmatch(text):
        return None
    return parse_uuid_lax(text) or text.lower()


def parse_uuid_dashed(text: str) -> str | None:
    """The canonical form of an 8-4-4-4-12 uuid in either case, or None.

    Source: spec/rest-api.md 1.6, uuids in query strings.
    """
    lower = text.lower() if text.isascii() else text
    return lower if _DASHED.fullmatch(lower) else None
