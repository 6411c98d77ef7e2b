# SPDX-License-Identifier: Apache-2.0
"""The rules for moving a provider to another parent.

A forest is a mapping from each provider to its parent; the parent of a root is None.
"""

from collections import defaultdict
from collections.abc import Mapping

from berth.model.errors import ReparentNotAllowed, UnparentNotAllowed
from berth.model.ids import ProviderId, ProviderUUID


def subtree(top: ProviderId, parents: Mapping[ProviderId, ProviderId | None]) -> list[ProviderId]:
    """`top` and everything below it, parents before their children.

    Cost: one pass over `parents`, which needs only the tree of `top`.
    """
    children: dict[ProviderId, list[ProviderId]] = defaultdict(list)
    for provider, parent in parents.items():
        if parent is not None:
            children[parent].append(provider)
    providers = [top]
    for provider in providers:  # grows during the loop
        providers.extend(children[provider])
    return providers


def check_move(
    provider: ProviderUUID,
    *,
    current: ProviderUUID | None,
    wanted: ProviderUUID | None,
    may_reparent: bool,
) -> None:
    """Refuse a change of parent that the client's microversion does not allow.

    A root may always move below another provider; `may_reparent`, which is true from microversion
    1.37, does not matter. The caller checks that the new parent exists and creates no loop.

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
