# SPDX-License-Identifier: Apache-2.0
"""What the journal says of the commits between two states: which providers they touched, and how
often.

Source: spec/beyond.md 6.2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field
from sqlalchemy import Integer, bindparam, cast, func, select

from berth.model.ids import ProviderId, ProviderUUID
from berth.store.engine import journal
from berth.store.engine.database import Database
from berth.store.engine.tables import berth_journal, berth_writer
from berth.store.engine.transaction import Tx

_note = berth_journal.c
_writer = berth_writer.c

_TRIMMED: Final = select(_writer.id, _writer.trimmed_seq)

_OF_WRITER: Final = (
    _note.writer_id == bindparam("writer"),
    _note.seq > bindparam("after"),
    _note.seq <= bindparam("upto"),
)
#: PERF one row for each provider, not one for each commit: after an hour of claims these are few.
_COUNTED: Final = (
    select(
        _note.provider_id,
        func.count(),
        func.min(cast(_note.usage_only, Integer)),
        func.max(_note.gone_uuid),
    )
    .where(*_OF_WRITER)
    .group_by(_note.provider_id)
)
_DELETIONS: Final = select(_note.provider_id, _note.gone_uuid).where(
    _note.writer_id == bindparam("writer"),
    _note.seq > bindparam("after"),
    _note.provider_id.in_(bindparam("providers", expanding=True)),
    _note.gone_uuid.is_not(None),
)
_ONE_BY_ONE: Final = select(_note.provider_id, _note.created_at, _note.seq, _note.gone_uuid).where(
    *_OF_WRITER, _note.provider_id.in_(bindparam("providers", expanding=True))
)


class BeyondHorizon(Exception):
    """The journal no longer has all commits since."""


class Noted(Struct):
    """The commits of some time, by what they touched.

    Attributes:
        names: how many changed names: classes, traits, labels, flavors.
        gone: how many touched each deleted provider, its deletion included.
        providers: how many touched each other provider, by its id. One that does not exist was
            deleted without a note, by another program.
        usage_only: those of `providers` of which only usage changed.
    """

    names: int = 0
    gone: list[tuple[ProviderUUID, int]] = field(default_factory=list)
    providers: dict[ProviderId, int] = field(default_factory=dict)
    usage_only: set[ProviderId] = field(default_factory=set)


def noted_between(
    db: Database,
    after: Mapping[int, int],
    upto: Mapping[int, int],
    *,
    exists: Callable[[ProviderId], bool],
) -> Noted:
    """What the commits after one state up to another have touched; a query for each writer that
    has committed.

    Args:
        after, upto: the states, as counts of commits by writer.
        exists: whether a provider has this id in the later state.

    Raises:
        BeyondHorizon: some of it is forgotten.
    """
    with db.read() as tx:
        for writer, trimmed in tx.rows(_TRIMMED, {}):
            if trimmed > after.get(writer, 0):
                raise BeyondHorizon
        moved = [
            {"writer": writer, "after": after.get(writer, 0), "upto": seq}
            for writer, seq in sorted(upto.items())
            if seq > after.get(writer, 0)
        ]
        return _noted(tx, moved, exists)


def deletions_since(
    tx: Tx, after: Mapping[int, int], providers: Collection[ProviderId]
) -> set[tuple[ProviderId, ProviderUUID]]:
    """The providers with some ids of which the journal says that they were deleted after a state; a
    query for each of its writers.

    Args:
        after: the state, as counts of commits by writer.
    """
    return {
        (number, ProviderUUID(gone))
        for writer, seq in after.items()
        for some in tx.chunks(sorted(providers))
        for number, gone in tx.rows(_DELETIONS, {"writer": writer, "after": seq, "providers": some})
    }


def _noted(
    tx: Tx, moved: Sequence[Mapping[str, Any]], exists: Callable[[ProviderId], bool]
) -> Noted:
    noted, with_deletions = Noted(), set[ProviderId]()
    changed: set[ProviderId] = set()
    for of_writer in moved:
        for provider, commits, usage_only, gone in tx.rows(_COUNTED, dict(of_writer)):
            if provider == journal.NAMES:
                noted.names += commits
                continue
            noted.providers[provider] = noted.providers.get(provider, 0) + commits
            if not usage_only:
                changed.add(provider)
            if gone is not None:
                with_deletions.add(provider)
    if with_deletions:
        _split_at_deletions(tx, moved, with_deletions, noted, exists)
    noted.usage_only = noted.providers.keys() - changed
    return noted


def _split_at_deletions(
    tx: Tx,
    moved: Sequence[Mapping[str, Any]],
    deleted: set[ProviderId],
    noted: Noted,
    exists: Callable[[ProviderId], bool],
) -> None:
    """Count the commits up to the deletion of a provider as that provider's.

    RACE tests/store/test_changes.py: times do not tell the order of the commits of two writers,
    whose clocks differ, and some engines store whole seconds. So if no provider has the id now, all
    of them are those of deleted ones. Only SQLite gives the id to a new one; its writers are on one
    machine, and a commit begins after the one before it has ended.
    """
    rows = [
        (created_at, seq, provider, gone)
        for of_writer in moved
        for chunk in tx.chunks(sorted(deleted))
        for provider, created_at, seq, gone in tx.rows(
            _ONE_BY_ONE, {**of_writer, "providers": chunk}
        )
    ]
    since_deletion = dict.fromkeys(deleted, 0)
    last: dict[ProviderId, ProviderUUID] = {}
    commits: Counter[ProviderUUID] = Counter()
    for _, _, provider, gone in sorted(rows, key=lambda row: row[:2]):
        since_deletion[provider] += 1
        if gone is not None:
            last[provider] = ProviderUUID(gone)
            commits[last[provider]] += since_deletion[provider]
            since_deletion[provider] = 0
    for provider, left in since_deletion.items():
        if exists(provider):
            # RACE tests/store/test_changes.py: writes that share a commit may delete a provider and
            # give its id to a new one; that commit has one note.
            noted.providers[provider] = left or 1
        else:
            commits[last[provider]] += left
            del noted.providers[provider]
    noted.gone = list(commits.items())
