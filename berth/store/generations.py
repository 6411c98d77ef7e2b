# SPDX-License-Identifier: Apache-2.0
"""The optimistic lock of providers: every accepted change increments the provider's generation.

So does every change by another program on the same database. But berth also writes the generation
to the usages, in the same commit; that distinguishes the two (`foreign_writes`).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Integer, bindparam, exists, func, literal, or_, select, update

from berth.model.errors import LostRace, ProviderGenerationConflict
from berth.model.ids import Generation, ProviderId
from berth.store.engine.expressions import rewritten
from berth.store.engine.tables import berth_usages, inventories, resource_providers
from berth.store.engine.transaction import Change, Tx, writes_all
from berth.store.foreign_writes import ForeignWrite
from berth.store.lookups import ProviderRow

_rp, _usage = resource_providers.c, berth_usages.c

#: Requires the generation that was read, or none if that is NULL.
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


#: All usages of a provider, if one of them has the provider's previous generation.
#: MySQL refuses to write to a table that a subquery reads, unless LIMIT materialises the subquery.
_guard: Final = berth_usages.alias("known")
_KEEP: Final = (
    update(berth_usages)
    .where(
        _usage.resource_provider_id == bindparam("provider"),
        exists(
            select(
                select(literal(1))
                .where(
                    _guard.c.resource_provider_id == bindparam("provider"),
                    _guard.c.generation == bindparam("seen"),
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
    """An increment of a provider's generation; `seen` None: from whatever it is."""

    provider: ProviderId
    seen: Generation | None = None
    steps: int = 1


def check_seen(provider: ProviderRow, seen: Generation) -> None:
    """Refuse a client whose view of the provider is out of date.

    This only gives a clear error; the guard is the WHERE of the bump that follows.

    Raises:
        ProviderGenerationConflict: the provider is at another generation.
    """
    if provider.generation != seen:
        raise ProviderGenerationConflict(provider.uuid, seen=seen, actual=provider.generation)


def bump_generation(tx: Tx, provider: ProviderRow) -> Generation:
    """Increment a provider's generation from the one that was read, and mark it as touched.

    Raises:
        LostRace: another request changed or deleted it since.
    """
    bump_generations(tx, [Bump(provider.id, provider.generation)])
    return Generation(provider.generation + 1)


def bump_generations(tx: Tx, bumps: Iterable[Bump]) -> None:
    """Increment several providers' generations, in id order, and mark the providers as touched.

    If a bump has `seen`, the new generation is also written to the provider's usages, so call this
    before you add or remove inventories. Otherwise the same transaction must write it to them: see
    `claims`.

    RACE tests/store/test_claim_races.py: the rows stay locked until the commit, so inventories
    that this transaction reads afterwards cannot change before it commits.

    Raises:
        LostRace: one of them was changed or deleted since it was read.
        ForeignWrite: another program had changed one of them.
    """
    tx.change_all(moving(tx, bumps))


def moving(tx: Tx, bumps: Iterable[Bump]) -> list[Change]:
    """The writes of `bump_generations`, to be sent before others in the same batch."""
    ordered = sorted(bumps, key=lambda bump: bump.provider)
    tx.touched.update(bump.provider for bump in ordered)
    return [bumping(tx, ordered), _keeping(tx, ordered)]


def bumping(tx: Tx, bumps: Sequence[Bump]) -> Change:
    """The increment of generations. It raises LostRace if one was changed or deleted.

    Args:
        bumps: in the order of the providers' ids.
    """
    rows = [
        {"provider": bump.provider, "seen": bump.seen, "steps": bump.steps, "now": tx.now}
        for bump in bumps
    ]
    return Change(_BUMP, rows, writes_all(len(rows), LostRace, "a resource provider"))


def _keeping(tx: Tx, bumps: Sequence[Bump]) -> Change:
    """The write of the providers' new generations to their usages.

    It raises ForeignWrite if another program had changed a provider.
    """
    moves = [
        {"provider": bump.provider, "seen": bump.seen, "generation": bump.seen + bump.steps}
        for bump in bumps
        if bump.seen is not None
    ]

    def check(counts: Sequence[int]) -> None:
        unkept = [move["provider"] for move, count in zip(moves, counts, strict=True) if not count]
        # A provider without inventories has no usages.
        if foreign := [
            provider for provider in unkept if tx.rows(_HAS_STOCK, {"provider": provider})[0][0]
        ]:
            raise ForeignWrite(foreign)

    return Change(_KEEP, moves, check)


def pinning(tx: Tx, provider: ProviderRow) -> Change:
    """A write that locks a provider's row without changing it; marks the provider as touched.

    For changes that leave the generation alone, but must exclude concurrent changes of the
    provider. It raises LostRace if another request changed or deleted it since it was read.
    """
    tx.touched.add(provider.id)
    row = {"provider": provider.id, "seen": provider.generation}
    return Change(_PIN, [row], writes_all(1, LostRace, f"resource provider {provider.uuid}"))
