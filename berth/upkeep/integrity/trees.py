# SPDX-License-Identifier: Apache-2.0
"""Providers and their trees: generations, parents, roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, bindparam, or_, select, update

from berth.store.engine.tables import resource_providers
from berth.store.engine.transaction import Tx
from berth.store.usage_counts import level_generations
from berth.upkeep.data_migrations import set_roots
from berth.upkeep.integrity.fault import Fault, Faults, Key, Rule, repairable
from berth.upkeep.integrity.words import provider_of, provider_words, with_provider
from berth.upkeep.trees import NO_PROVIDER, Trees, WrongRoot, read_trees, wrong_roots

_provider = resource_providers.c

_ADVICE: Final = (
    "berth cannot tell whether its parent or its root is right: restore a backup, or set "
    "parent_provider_id and root_provider_id of its row by hand"
)


def _wrong_roots(tx: Tx) -> Faults:
    wrong = wrong_roots(read_trees(tx))
    names = _names(tx, {number for root in wrong for number in root})
    for root in wrong:
        provider = names[root.provider]
        is_own = root.right == root.provider
        right = "the provider itself" if is_own else names[root.right]
        yield Fault(
            f"{provider} has {_root_words(root.stored, names)}; following its parents, the root is "
            f"{right}",
            f"make {provider} its own root" if is_own else f"make {right} the root of {provider}",
            "",
            root._asdict(),
        )


def _set_roots(tx: Tx, keys: Sequence[Key]) -> None:
    set_roots(tx, [WrongRoot(**key) for key in keys])


def _damaged_trees(tx: Tx) -> Faults:
    """One fault for each provider: the most specific one."""
    trees = read_trees(tx)
    lost, looped = trees.lost_parents(), trees.on_loops()
    misled = trees.misled() & ~lost & ~looped
    damaged = lost | looped | misled
    names = _names(tx, {*_at(trees.ids, damaged), *_at(trees.roots, misled)})
    for place in np.flatnonzero(damaged).tolist():
        number = int(trees.ids[place])
        if lost[place]:
            damage = (
                f"has provider number {trees.parents[place]} as its parent, which does not exist"
            )
        elif looped[place]:
            damage = "is below itself"
        else:
            damage = _misled_words(trees, place, names)
        yield Fault(f"{names[number]} {damage}", None, _ADVICE, {"provider": number})


def _misled_words(trees: Trees, place: int, names: dict[int, str]) -> str:
    root = _root_words(int(trees.roots[place]), names)
    if trees.parents[place] == NO_PROVIDER:
        return f"has no parent, but {root}"
    return f"has {root}, which is not that of its parent"


def _root_words(root: int, names: dict[int, str]) -> str:
    return "no root" if root == NO_PROVIDER else f"{names[root]} as its root"


def _at(values: NDArray[np.int64], mask: NDArray[np.bool_]) -> list[int]:
    selected: list[int] = values[mask].tolist()
    return selected


def _names(tx: Tx, providers: set[int]) -> dict[int, str]:
    """The names of some providers for messages, whether they exist or not."""
    columns = select(_provider.id, _provider.uuid, _provider.name)
    words = {number: provider_words(number, None, None) for number in providers}
    for chunk in tx.chunks(sorted(providers)):
        for number, uuid, name in tx.connection.execute(columns.where(_provider.id.in_(chunk))):
            words[number] = provider_words(number, uuid, name)
    return words


# --- Generations ---------------------------------------------------------------------------------


def _generation_words(row: Row[Any]) -> str:
    generation = "no generation" if row.generation is None else f"the generation {row.generation}"
    return f"{provider_of(row)} has {generation}"


_BAD_GENERATIONS: Final = with_provider(select(_provider.generation), _provider.id).where(
    or_(_provider.generation.is_(None), _provider.generation < 0)
)
_RESTART: Final = (
    update(resource_providers)
    .where(
        _provider.id == bindparam("provider"),
        or_(_provider.generation.is_(None), _provider.generation < 0),
    )
    .values(generation=0, updated_at=bindparam("now"))
)


def _restart(tx: Tx, keys: Sequence[Key]) -> None:
    tx.connection.execute(_RESTART, [{"provider": key["provider"], "now": tx.now} for key in keys])
    level_generations(tx, {key["provider"] for key in keys})
    tx.touched.update(key["provider"] for key in keys)


RULES: Final = (
    repairable(
        _BAD_GENERATIONS,
        _generation_words,
        lambda row: f"let the generation of {provider_of(row)} begin at 0",
        _restart,
    ),
    Rule(_wrong_roots, _set_roots),
    Rule(_damaged_trees),
)
