# SPDX-License-Identifier: Apache-2.0
"""The rules of moving a provider to another place in the forest.

A forest is told by its parents: a mapping from each provider to its parent, None for a root.
"""

from collections import defaultdict
from collections.abc import Mapping

from berth.model.errors import ReparentNotAllowed, UnparentNotAllowed
from berth.model.ids import ProviderId, ProviderUUID


def subtree(top: ProviderId, parents: Mapping[ProviderId, ProviderId | None]) -> list[ProviderId]:
    """`top` and everything below it, parents before their children.

    Cost: one pass over `parents`, which need hold no more than the tree of `top`.
    """
    children: dict[ProviderId, list[ProviderId]] = defaultdict(list)
    for provider, parent in parents.items():
        if parent is not None:
            children[parent].append(provider)
    found = [top]
    for provider in found:  # grows while it is walked
        found.extend(children[provider])
    return found


def check_move(
    provider: ProviderUUID,
    *,
    current: ProviderUUID | None,
    wanted: ProviderUUID | None,
    may_reparent: bool,
) -> None:
    """Refuse a change of parent that the caller's microversion does not allow.

    A root may always be put below another provider, whatever `may_reparent` says (it is true from
    microversion 1.37 on). Whether the new parent exists and makes no loop is another question.

    Raises:
        UnparentNotAllowed: a child may not become a root.
        ReparentNotAllowed: a child may not get another parent.
    Source: spec/rest-api.md 4.4.
    """
    if may_reparent or current is None or wanted == current:
        return
    if wanted is None:
        raise UnparentNotAllowed(provider, None)
    raise ReparentNotAllowed(provider, wanted)
