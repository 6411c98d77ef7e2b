# SPDX-License-Identifier: Apache-2.0
"""Names of providers and of their hosts, for records that people read later."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ProviderId, ProviderUUID


class NamedProvider(NamedTuple):
    """A provider with its name, and the name of its root: the host."""

    uuid: ProviderUUID
    #: None in old data.
    name: str | None
    #: None if it is unknown.
    host: str | None


def named_provider(
    snapshot: Snapshot | None, provider: ProviderUUID | ProviderId
) -> NamedProvider | None:
    """A provider, by its uuid or its id; None if the snapshot does not have it."""
    if snapshot is None:
        return None
    at = snapshot.locate_uuid(provider) if isinstance(provider, str) else snapshot.locate(provider)
    return None if at is None else _named(snapshot, at)


def _named(snapshot: Snapshot, at: Location) -> NamedProvider:
    block = snapshot.block(at.block_id)
    name, host = (msgspec.json.decode(block.names.item(node, at.row)) for node in (at.node, 0))
    return NamedProvider(ProviderUUID(block.uuid(at.node, at.row)), name, host)
