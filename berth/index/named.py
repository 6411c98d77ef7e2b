# SPDX-License-Identifier: Apache-2.0
"""Providers with their names, and with those of their hosts for records that people read later."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from berth.index.block import Block
from berth.index.snapshot import Location, Snapshot
from berth.model.ids import ProviderId, ProviderUUID


class NamedProvider(NamedTuple):
    """A provider with its name."""

    uuid: ProviderUUID
    #: None in old data.
    name: str | None


class HostedProvider(NamedTuple):
    """A provider with its name, and the name of its root: the host."""

    uuid: ProviderUUID
    #: None in old data.
    name: str | None
    #: None if it is unknown.
    host: str | None


def named_provider(block: Block, node: int, row: int) -> NamedProvider:
    """The provider at a place in a block."""
    return NamedProvider(ProviderUUID(block.uuid(node, row)), _name(block, node, row))


def hosted_provider(
    snapshot: Snapshot | None, provider: ProviderUUID | ProviderId
) -> HostedProvider | None:
    """A provider, by its uuid or its id; None if the snapshot does not have it."""
    if snapshot is None:
        return None
    at = snapshot.locate_uuid(provider) if isinstance(provider, str) else snapshot.locate(provider)
    return None if at is None else _hosted(snapshot, at)


def _hosted(snapshot: Snapshot, at: Location) -> HostedProvider:
    block = snapshot.block(at.block_id)
    named = named_provider(block, at.node, at.row)
    return HostedProvider(named.uuid, named.name, host=_name(block, 0, at.row))


def _name(block: Block, node: int, row: int) -> str | None:
    name: str | None = msgspec.json.decode(block.names.item(node, row))
    return name
