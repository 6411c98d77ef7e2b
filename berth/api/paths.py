# SPDX-License-Identifier: Apache-2.0
"""Identities out of the path.

Any spelling of a uuid finds what it names; text that is none is looked for as it stands, and not
found. Source: spec/rest-api.md 1.9.
"""

from __future__ import annotations

from berth.model.ids import ConsumerUUID, ProviderUUID, parse_uuid_lax


def provider_uuid(text: str) -> ProviderUUID:
    """The provider that a path names."""
    return ProviderUUID(parse_uuid_lax(text) or text)


def consumer_uuid(text: str) -> ConsumerUUID:
    """The consumer that a path names."""
    return ConsumerUUID(parse_uuid_lax(text) or text)
