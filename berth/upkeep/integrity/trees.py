# SPDX-License-Identifier: Apache-2.0
"""Providers and their trees: generations, parents, roots.

The trees are derived from the parents, to compare them with the stored roots; a million providers
take some 50 MB. All arrays have one entry for each provider, in order of the ids; a position is an
index into them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Row, bindparam, func, or_, select, update

from berth.store.engine.database import Database
from berth.store.engine.tables import resource_providers
from berth.store.engine.transaction import Tx
from berth.store.usage_counts import Report, level_generations, unheard
from berth.store.versions import write_unserved
from berth.upkeep.integrity.fault import (
    MIGRATED_PART,
    Fault,
    Faults,
    Key,
    Rule,
    provider_of,
    provider_words,
    rule,
    with_provider,
)

_provider = resource_providers.c

#: Instead of an id: none. The smallest number that a column of ids can hold.
NO_PROVIDER: Final = -(2**31)

#: Instead of a parent's position: no parent, or one that does not exist.
_NO_PARENT: Final = -1
_LOST_PARENT: Final = -2

#: Rows that are fetched at a time.
_ROWS: Final = 10_000

_Ids = NDArray[np.int64]
_Mask = NDArray[np.bool_]


class WrongRoot(NamedTuple):
    """A provider that names a root which is not that of its tree; `stored` may be NO_PROVIDER."""

    provider: int
    stored: int
    right: int


@dataclass(frozen=True, slots=True)
class Trees:
    """The trees as arrays.

    Attributes:
        ids: of the providers, ascending.
        parents, roots: ids, or NO_PROVIDER.
        above: position of the parent, or _NO_PARENT, or _LOST_PARENT.
        ends: position of the topmost ancestor; for a provider on a loop, that of any on it.
    """

    ids: _Ids
    parents: _Ids
    roots: _Ids
    above: _Ids
    ends: _Ids

    def is_endless(self) -> _Mask:
        """The providers whose ancestors form a loop."""
        endless: _Mask = self.above[self.ends] >= 0
        return endless

    def on_loops(self) -> _Mask:
        """The providers that are below themselves."""
        mask = np.zeros(len(self.ids), dtype=np.bool_)
        mask[self.ends[self.is_endless()]] = True
        return mask

    def right_roots(self) -> _Ids:
        """The ids of the roots that follow from the parents; NO_PROVIDER if that is undetermined.

        That is the case below a loop, below a parent that does not exist, and below a provider that
        has no parent but names another as its root: one of the two is wrong.
        """
        end_ids, end_roots = self.ids[self.ends], self.roots[self.ends]
        tells = (self.above[self.ends] == _NO_PARENT) & (
            (end_roots == NO_PROVIDER) | (end_roots == end_ids)
        )
        return np.where(tells, end_ids, NO_PROVIDER)

    def lost_parents(self) -> _Mask:
        """The providers whose parent does not exist."""
        lost: _Mask = self.above == _LOST_PARENT
        return lost

    def misled(self) -> _Mask:
        """Providers whose root is wrong, but whose right root is unknown."""
        astray = np.where(
            self.above >= 0,
            self.roots != self.roots[self.above],
            (self.above == _NO_PARENT) & (self.roots != self.ids),
        )
        misled: _Mask = (self.right_roots() == NO_PROVIDER) & ((self.roots == NO_PROVIDER) | astray)
        return misled


def read_trees(tx: Tx) -> Trees:
    """Read all providers. Cost: reads one table once."""
    rp = resource_providers.c
    query = select(
        rp.id,
        func.coalesce(rp.parent_provider_id, NO_PROVIDER),
        func.coalesce(rp.root_provider_id, NO_PROVIDER),
    ).order_by(rp.id)
    rows = tx.connection.execute(query, execution_options={"yield_per": _ROWS})
    parts = [np.array(part, dtype=np.int64).reshape(-1, 3) for part in rows.partitions()]
    columns = np.concatenate(parts) if parts else np.empty((0, 3), dtype=np.int64)
    ids, parents, roots = (np.ascontiguousarray(columns[:, place]) for place in range(3))
    above = _positions(ids, parents)
    return Trees(ids, parents, roots, above, _ends(above))


def wrong_roots(trees: Trees) -> list[WrongRoot]:
    """The providers whose stored root is not the one that follows from their parents."""
    right = trees.right_roots()
    wrong = np.flatnonzero((right != NO_PROVIDER) & (right != trees.roots))
    return [
        WrongRoot(int(trees.ids[at]), int(trees.roots[at]), int(right[at])) for at in wrong.tolist()
    ]


def _positions(ids: _Ids, parents: _Ids) -> _Ids:
    if not len(ids):
        return ids
    places = np.minimum(np.searchsorted(ids, parents), len(ids) - 1)
    positions = np.where(ids[places] == parents, places, _LOST_PARENT)
    return np.where(parents == NO_PROVIDER, _NO_PARENT, positions)


def _ends(above: _Ids) -> _Ids:
    """The topmost ancestors, found by doubling the length of the steps."""
    at = np.where(above >= 0, above, np.arange(len(above)))
    for _ in range(len(above).bit_length()):
        at = at[at]
    return at


# --- Roots ---------------------------------------------------------------------------------------

_SET_ROOT: Final = (
    update(resource_providers)
    .where(
        _provider.id == bindparam("provider"),
        func.coalesce(_provider.root_provider_id, NO_PROVIDER) == bindparam("stored"),
    )
    .values(root_provider_id=bindparam("right"), updated_at=bindparam("now"))
)


def give_roots(db: Database, most: int = MIGRATED_PART, report: Report = unheard) -> Iterator[int]:
    """Set the missing roots of providers, `most` in a transaction; yield the number of each.

    A provider whose root cannot be determined gets none.
    """
    with db.read() as tx:
        wrong = [root for root in wrong_roots(read_trees(tx)) if root.stored == NO_PROVIDER]
    for done in range(0, len(wrong), most):
        report("roots of providers", done, len(wrong))
        some = wrong[done : done + most]
        write_unserved(db, partial(_set_roots, keys=[root._asdict() for root in some]))
        yield len(some)


def _set_roots(tx: Tx, keys: Sequence[Key]) -> None:
    """Write the right roots of some providers, unless they have been moved since."""
    tx.change(_SET_ROOT, [{**key, "now": tx.now} for key in keys])
    tx.touched.update(key["provider"] for key in keys)


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


def _bad_generation(row: Row[Any]) -> str:
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
    tx.change(_RESTART, [{**key, "now": tx.now} for key in keys])
    level_generations(tx, {key["provider"] for key in keys})
    tx.touched.update(key["provider"] for key in keys)


RULES: Final = (
    rule(
        _BAD_GENERATIONS,
        _bad_generation,
        action="let the generation of {provider_words} begin at 0",
        repair=_restart,
    ),
    Rule(_wrong_roots, _set_roots),
    Rule(_damaged_trees),
)
