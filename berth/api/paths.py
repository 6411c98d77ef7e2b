# SPDX-License-Identifier: Apache-2.0
"""What a path says: identities, and whether it is one that is open to everybody.

Any spelling of a uuid finds what it names; text that is none is looked for as it stands, and not
found. Source: spec/rest-api.md 1.9.
"""

from __future__ import annotations

from typing import Final
from wsgiref.types import WSGIEnvironment

from berth.model.ids import ConsumerUUID, ProviderUUID, parse_uuid_lax

#: The version document, and the description of the API.
PUBLIC = frozenset({"/", "/openapi.json"})
#: An application that is mounted under a prefix may be asked for that alone.
_PUBLIC_OR_EMPTY = PUBLIC | {"", None}

#: Where candidates are searched for.
CANDIDATES: Final = "/allocation_candidates"

#: The paths of operations, which are no part of the API.
HEALTHCHECK: Final = "/healthcheck"
LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"
METRICS: Final = "/metrics"


def provider_uuid(text: str) -> ProviderUUID:
    """The provider that a path names."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def consumer_uuid(text: str) -> ConsumerUUID:
    """The consumer that a path names."""
    return ConsumerUUID(parse_uuid_lax(text) or text)


def is_public(environ: WSGIEnvironment) -> bool:
    """Whether the path is one that tells of the API alone, and nothing of the fleet: who asks for
    it needs no token and waits for nobody."""
    return environ.get("PATH_INFO") in _PUBLIC_OR_EMPTY
