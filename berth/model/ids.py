# SPDX-License-Identifier: Apache-2.0
"""Identities: uuids as they travel, row ids as the database knows them, generations.

A uuid is held as text in its canonical form, lower-case and dashed. Every spelling that the
API accepts is brought to that form once, at the edge, by one of the parsers below, so that
the layers underneath compare uuids as plain strings.
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

#: The lock: counts the accepted changes of a provider or a consumer.
Generation = NewType("Generation", int)

_DASHED: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_THIRTY_SIX: Final = re.compile(r"[0-9a-fA-F-]{36}")
_HEX_DIGITS: Final = re.compile(r"[0-9a-fA-F]{32}")


def parse_uuid_lax(text: str) -> str | None:
    """The canonical form of a uuid in any of Python's spellings, or None.

    Dashes may be missing or stand anywhere, letters may be of either case, and braces or a
    `urn:uuid:` prefix may surround it. Blanks may not, and neither may anything else.
    Source: spec/rest-api.md 1.9, "lax".
    """
    if _DASHED.fullmatch(text):
        return text  # nearly every uuid arrives like this
    bare = text.replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "")
    return str(UUID(bare)) if _HEX_DIGITS.fullmatch(bare) else None


def common_spellings(uuid: str) -> tuple[str, ...]:
    """The canonical form of a uuid and the other ways in which clients write it, each once.

    Without dashes is what Python's `UUID.hex` gives, upper case what some tools print.
    """
    undashed = uuid.replace("-", "")
    return tuple(dict.fromkeys((uuid, undashed, uuid.upper(), undashed.upper())))


def parse_uuid_36(text: str) -> str | None:
    """The canonical form of 36 hexadecimal digits and dashes, or None.

    Text that passes the rule and is no uuid (36 dashes, say) is only brought to lower case: it
    may name something in an old database, and otherwise simply matches nothing.
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
