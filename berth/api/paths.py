# SPDX-License-Identifier: Apache-2.0
"""What a path says: identities, and whether it is the one that is open to everybody.

Any spelling of a uuid finds what it names; text that is none is looked for as it stands, and not
found. Source: spec/rest-api.md 1.9.
"""

from __future__ import annotations

from wsgiref.types import WSGIEnvironment

from berth.model.ids import ConsumerUUID, ProviderUUID, parse_uuid_lax


def provider_uuid(text: str) -> ProviderUUID:
    """The provider that a path names."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def consumer_uuid(text: str) -> ConsumerUUID:
    """The consumer that a path names."""
    return ConsumerUUID(parse_uuid_lax(text) or text)


def is_version_document(environ: WSGIEnvironment) -> bool:
    """Whether `GET /` is meant, by its path: who asks it needs no token and waits for nobody."""
    return environ.get("PATH_INFO") in ("/", "", None)
