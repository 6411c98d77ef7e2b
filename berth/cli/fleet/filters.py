# SPDX-License-Identifier: Apache-2.0
"""The filters of providers and candidates, as query parameters of the API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from berth.cli.fleet.references import Labels, find_provider
from berth.pasted.command import conditions

if TYPE_CHECKING:
    from berth.cli.fleet.client import Client

_AMOUNT: Final = re.compile(r"(?P<name>[A-Z0-9_]+)[=:](?P<amount>[0-9]+)")


def amounts_of(texts: Iterable[str]) -> dict[str, int]:
    """Amounts by resource class.

    Raises:
        UsageError: a text is not `CLASS=AMOUNT`, or a class is named twice.
    """
    amounts: dict[str, int] = {}
    for text in texts:
        match = _AMOUNT.fullmatch(text)
        if match is None:
            raise click.UsageError(f"{text} is not CLASS=AMOUNT, as in VCPU=4")
        if match["name"] in amounts:
            raise click.UsageError(f"{match['name']} is named twice")
        amounts[match["name"]] = int(match["amount"])
    return amounts


def provider_query(
    client: Client,
    name: str | None,
    in_tree: str | None,
    resources: Sequence[str],
    required: Sequence[str],
    member_of: Sequence[str],
) -> list[tuple[str, str]]:
    """The query of `GET /resource_providers`.

    Raises:
        UsageError: see `amounts_of`.
        NotThere: a provider or an aggregate does not exist.
    """
    query = [] if name is None else [("name", name)]
    if in_tree is not None:
        query.append(("in_tree", str(find_provider(client, in_tree)["uuid"])))
    if resources:
        pairs = (f"{name}:{number}" for name, number in amounts_of(resources).items())
        query.append(("resources", ",".join(pairs)))
    query += [("required", traits) for traits in required]
    query += [("member_of", text) for text in memberships(Labels(client), member_of)]
    return query


def memberships(labels: Labels, texts: Iterable[str]) -> Iterator[str]:
    """Conditions on aggregates as the API has them, with UUIDs instead of names and labels.

    Raises:
        NotThere: an aggregate does not exist.
    """
    for text in texts:
        for names, is_forbidden in conditions(text):
            uuids = [uuid for name in names for uuid in labels.aggregates(name)]
            mark = "!" if is_forbidden else ""
            yield mark + (uuids[0] if len(uuids) == 1 else f"in:{','.join(uuids)}")
