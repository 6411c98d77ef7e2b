# SPDX-License-Identifier: Apache-2.0
"""From ranked candidates to the JSON of `POST /berth/v1/candidates`.

The candidates of a batch have one text, with gaps for uuids, amounts that are split, and scores.
The texts consist of uuids and names in `[A-Za-z0-9_-]`, so nothing needs escaping.

Source: spec/beyond.md 2.6.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.budget import Budget
from berth.candidates.hosts import hosts_of, serving_each
from berth.candidates.order import Order, Scores
from berth.candidates.plan import Plan
from berth.candidates.ranking import Ranked
from berth.candidates.request import ResponseForm
from berth.candidates.summaries import SummaryTexts
from berth.index.block import Ints
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId

#: Provider summaries as at 1.39.
_FORM: Final = ResponseForm(
    allocations_as_list=False, traits=True, all_classes=True, trees=True, mappings=True
)

#: A value for each gap: of each candidate, or the same of all.
_Column = Sequence[object]


def candidate_texts(
    snapshot: Snapshot, plan: Plan, order: Order, ranked: Ranked, budget: Budget
) -> list[bytes]:
    """The JSON of each candidate, in their order.

    It ends with the candidate with which the texts reach the budget's size; the budget counts the
    candidates.
    """
    of_batches: dict[int, list[bytes]] = {}
    texts: list[bytes] = []
    size = 0
    for number, place in ranked.order:
        of_batch = of_batches.get(number)
        if of_batch is None:
            batch, scores = ranked.batches[number]
            of_batch = of_batches[number] = _texts_of(snapshot, plan, order, batch, scores)
        texts.append(of_batch[place])
        size += len(of_batch[place])
        budget.candidates += 1
        if budget.is_filled_by(size):
            break
    return texts


def summaries(snapshot: Snapshot, plan: Plan, batches: Iterable[Batch]) -> bytes:
    """`provider_summaries` of some candidates, in the form of 1.39."""
    texts = SummaryTexts(snapshot, plan, _FORM)
    for batch in batches:
        texts.add(batch)
    return b"".join((b"{", *texts.written(texts.parts()), b"}"))


def _texts_of(
    snapshot: Snapshot, plan: Plan, order: Order, batch: Batch, scores: Scores | None
) -> list[bytes]:
    """The texts of the candidates of a batch."""
    pieces: list[bytes] = []
    columns: list[_Column] = []
    for piece in _pieces(snapshot, plan, order, batch, scores):
        if isinstance(piece, bytes):
            pieces.append(piece)
        else:
            written, column = piece
            pieces.append(written)
            columns.append(column)
    text = b"".join(pieces)
    return [text % values for values in zip(*columns, strict=True)]


def _pieces(
    snapshot: Snapshot, plan: Plan, order: Order, batch: Batch, scores: Scores | None
) -> Iterator[bytes | tuple[bytes, _Column]]:
    """The text of the candidates of a batch: fixed parts, and gaps with their values."""
    providers: dict[int, tuple[bytes, _Column]] = {}

    def provider(choice: int) -> tuple[bytes, _Column]:
        if choice not in providers:
            providers[choice] = b'"%b"', _uuids(batch, choice)
        return providers[choice]

    yield b'{"host": '
    yield b'"%b"', _host_uuids(snapshot, batch)
    yield b', "allocations": {'
    for number, (choice, amounts) in enumerate(_by_choice(batch, plan).items()):
        yield b", " if number else b""
        yield provider(choice)
        yield b': {"resources": {'
        for place, (class_id, amount) in enumerate(amounts.items()):
            name = snapshot.names.class_names[class_id].encode()
            yield b'%b"%b": ' % (b", " if place else b"", name)
            yield b"%d" % amount if isinstance(amount, int) else (b"%d", amount.tolist())
        yield b"}}"
    yield b'}, "mappings": {'
    for number, (suffix, choices) in enumerate(batch.serving(plan).items()):
        yield b'%b"%b": [' % (b", " if number else b"", suffix.encode())
        for place, choice in enumerate(choices):
            yield b", " if place else b""
            yield provider(choice)
        yield b"]"
    yield b"}"
    if scores is not None:
        yield from _score_pieces(order, scores)
    yield b"}"


def _score_pieces(order: Order, scores: Scores) -> Iterator[bytes | tuple[bytes, _Column]]:
    yield b', "score": {"total": '
    yield b"%a", scores.total.tolist()
    if scores.strategy is not None:
        yield b', "%b": ' % order.by.encode()
        yield b"%a", scores.strategy.tolist()
    yield b', "prefer": ['
    for number, (preference, added) in enumerate(zip(order.prefer, scores.prefer, strict=True)):
        yield b", " if number else b""
        weight = preference.weight
        yield b"%a", [weight if each else 0 for each in added.tolist()]
    yield b"]}"


def _by_choice(batch: Batch, plan: Plan) -> dict[int, dict[ClassId, int | Ints]]:
    """What each choice gives, choice by choice."""
    amounts: dict[int, dict[ClassId, int | Ints]] = {}
    for (choice, class_id), amount in batch.given(plan).items():
        amounts.setdefault(choice, {})[class_id] = amount
    return amounts


def _uuids(batch: Batch, choice: int) -> list[bytes]:
    """The uuid of the provider of a choice, for each candidate."""
    trees = batch.trees
    if choice < trees.block.shape.size:
        texts: list[bytes] = trees.block.uuid_texts[choice].take(batch.rows).tolist()
        return texts
    return [
        trees.sharing_providers.text(each).tobytes().rstrip(b"\0")
        for each in serving_each(batch, choice)
    ]


def _host_uuids(snapshot: Snapshot, batch: Batch) -> _Column:
    uuids: Mapping[int, bytes] = {
        place: uuid
        for hosts in hosts_of(snapshot, batch)
        for place, uuid in zip(
            np.arange(len(batch.positions))[hosts.at].tolist(),
            hosts.uuid_texts().tolist(),
            strict=True,
        )
    }
    return [uuids[place] for place in range(len(batch.positions))]
