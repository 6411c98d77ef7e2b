# SPDX-License-Identifier: Apache-2.0
"""Deletes providers, and says what blocks a deletion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from berth.cli.columns import counted
from berth.cli.fleet.provider_trees import in_order
from berth.cli.fleet.refusals import InConflict

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client
    from berth.cli.fleet.references import Json

#: So many consumers or providers are named in a message.
_NAMED_MAX: Final = 3


def delete_providers(client: Client, provider: Json, *, with_tree: bool) -> list[str]:
    """Delete a provider, or it and everything below it; return the names in that order.

    Raises:
        InConflict: something has allocations, or is below; the message says what.
    """
    doomed = _with_all_below(client, provider) if with_tree else [provider]
    for item in doomed:
        try:
            client.send("DELETE", f"/resource_providers/{item['uuid']}")
        except InConflict as error:
            blocks = "; ".join(_what_blocks(client, item))
            raise InConflict(f"{item['name']} was not deleted: {blocks or error}") from error
    return [str(item["name"]) for item in doomed]


def _with_all_below(client: Client, provider: Json) -> Sequence[Json]:
    """A provider after everything below it."""
    tree = client.read("/resource_providers", ("in_tree", provider["uuid"]))["resource_providers"]
    above = {provider["uuid"]}
    doomed = []
    for item, _ in in_order(tree):
        if item["uuid"] in above or item["parent_provider_uuid"] in above:
            above.add(item["uuid"])
            doomed.append(item)
    return doomed[::-1]


def _what_blocks(client: Client, provider: Json) -> Iterator[str]:
    uuid = provider["uuid"]
    tree = client.read("/resource_providers", ("in_tree", uuid))["resource_providers"]
    children = sorted(item["name"] for item in tree if item["parent_provider_uuid"] == uuid)
    if children:
        yield (
            f"{counted(len(children), 'provider is', 'providers are')} below it "
            f"({_named(children)}): add --tree"
        )
    consumers = client.read(f"/resource_providers/{uuid}/allocations")["allocations"]
    if consumers:
        yield (
            f"{counted(len(consumers), 'consumer has', 'consumers have')} allocations "
            f"({_named(sorted(consumers))}): `berth release` them first"
        )


def _named(names: Sequence[str]) -> str:
    more = [] if len(names) <= _NAMED_MAX else [f"{len(names) - _NAMED_MAX:,} more"]
    return ", ".join([*names[:_NAMED_MAX], *more])
