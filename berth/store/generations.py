# SPDX-License-Identifier: Apache-2.0
"""The lock of providers: every accepted change counts its generation up, in the same commit.

So does every change by another program on the same database, but that does not write the generation
to the sums of usage, as berth does: by this the two are told apart (`foreign_writes`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Integer, bindparam, exists, func, literal, or_, select, update

from berth.model.errors import LostRace, ProviderGenerationConflict
from berth.model.ids import Generation, ProviderId
from berth.store.engine.tables import berth_usages, inventories, resource_providers
from berth.store.engine.transaction import Tx
from berth.store.expressions import rewritten
from berth.store.foreign_writes import ForeignWrite
from berth.store.lookups import ProviderRow

_rp, _usage = resource_providers.c, berth_usages.c

#: Written with the generation that was read, or with any when that is NULL.
_BUMP: Final = (
    update(resource_providers)
    .where(
        _rp.id == bindparam("provider"),
        _rp.generation == func.coalesce(bindparam("seen", type_=Integer), _rp.generation),
    )
    .values(
        generation=_rp.generation + bindparam("steps", type_=Integer), updated_at=bindparam("now")
    )
)

_PIN: Final = (
    update(resource_providers)
    .where(_rp.id == bindparam("provider"), _rp.generation == bindparam("seen"))
    .values(generation=_rp.generation, updated_at=rewritten(_rp.updated_at))
)


#: All sums of a provider, if one of them has the generation that the provider had.
#: LIMIT makes MySQL read the table before it writes to it, without which it refuses to.
_known: Final = berth_usages.alias("known")
_KEEP: Final = (
    update(berth_usages)
    .where(
        _usage.resource_provider_id == bindparam("provider"),
        exists(
            select(
                select(literal(1))
                .where(
                    _known.c.resource_provider_id == bindparam("provider"),
                    _known.c.generation == bindparam("seen"),
                )
                .limit(1)
                .subquery("one")
            )
        ),
    )
    .values(generation=bindparam("generation", type_=Integer))
)
_HAS_STOCK: Final = select(
    or_(
        exists().where(inventories.c.resource_provider_id == bindparam("provider")),
        exists().where(_usage.resource_provider_id == bindparam("provider")),
    )
)


class Bump(NamedTuple):
    """A provider's way to its next generation; `seen` None: from whatever it is at."""

    provider: ProviderId
    seen: Generation | None = None
    steps: int = 1


def check_seen(provider: ProviderRow, seen: Generation) -> None:
    """Refuse a client whose view of the provider is out of date.

    This only words the refusal; the guard is the WHERE of the bump that follows.

    Raises:
        ProviderGenerationConflict: the provider is at another generation.
    """
    if provider.generation != seen:
        raise ProviderGenerationConflict(provider.uuid, seen=seen, actual=provider.generation)


def bump_generation(tx: Tx, provider: ProviderRow) -> Generation:
    """Move a provider on by one from the generation that was read; it counts as touched.

    Raises:
        LostRace: somebody moved or deleted it since.
    """
    bump = Bump(provider.id, provider.generation)
    bump_generations(tx, [bump])
    keep_generations(tx, [bump])
    return Generation(provider.generation + 1)


def keep_generations(tx: Tx, bumps: Sequence[Bump]) -> None:
    """Write the new generations of providers to their sums; for those with `seen`, after the bump
    and before inventories come or go.

    Raises:
        ForeignWrite: one of them had been moved by another program.
    """
    moves = [
        {"provider": one.provider, "seen": one.seen, "generation": one.seen + one.steps}
        for one in sorted(bumps, key=lambda bump: bump.provider)
        if one.seen is not None
    ]
    if not moves:
        return
    counts = tx.change_each(_KEEP, moves)
    unkept = [move["provider"] for move, count in zip(moves, counts, strict=True) if not count]
    # Who has no inventory has no sums.
    if foreign := [
        provider for provider in unkept if tx.rows(_HAS_STOCK, {"provider": provider})[0][0]
    ]:
        raise ForeignWrite(foreign)


def bump_generations(tx: Tx, bumps: Iterable[Bump], *, for_usage: bool = False) -> None:
    """Move several providers on, in the order of their ids; all of them count as touched, unless
    nothing but their usage is to change.

    Their sums of usage must get the new generations in the same transaction: `keep_generations`, or
    `claims.apply_claim`.

    RACE tests/store/test_claim_races.py: the rows stay locked until the commit, so whoever reads
    inventories after this sees them as they will be when it commits.

    Raises:
        LostRace: one of them was moved or deleted since it was read.
    """
    ordered = sorted(bumps, key=lambda bump: bump.provider)
    if not ordered:
        return
    bumped = tx.change(
        _BUMP,
        [
            {"provider": bump.provider, "seen": bump.seen, "steps": bump.steps, "now": tx.now}
            for bump in ordered
        ],
    )
    if bumped != len(ordered):
        raise LostRace("a resource provider")
    (tx.reused if for_usage else tx.touched).update(bump.provider for bump in ordered)


def pin_provider(tx: Tx, provider: ProviderRow) -> None:
    """Write a provider's row without changing it, and count it as touched.

    For changes that leave the generation alone: the row is the guard that they share with others.

    Raises:
        LostRace: somebody moved or deleted it since it was read.
    """
    if tx.change(_PIN, {"provider": provider.id, "seen": provider.generation}) != 1:
        raise LostRace(f"resource provider {provider.uuid}")
    tx.touched.add(provider.id)
