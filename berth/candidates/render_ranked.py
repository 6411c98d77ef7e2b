# SPDX-License-Identifier: Apache-2.0
"""From ranked candidates to the JSON of `POST /berth/v1/candidates`.

The candidates of a batch have one text, with gaps for uuids, amounts that are split, and scores.
The texts consist of uuids and names in `[A-Za-z0-9_-]`, so nothing needs escaping.

Source: spec/beyond.md 2.6.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from berth.candidates.batch import Batch, hosts_of, serving_each
from berth.candidates.order import Order, Scores
from berth.candidates.plan import Plan
from berth.candidates.question import ResponseForm
from berth.candidates.ranking import CUT_MAX, Ranked
from berth.candidates.render import Part, SummaryTexts
from berth.index.snapshot import Snapshot
from berth.model.budget import Budget
from berth.model.ids import ClassId

#: Provider summaries as at 1.39.
_FORM: Final = ResponseForm(
    allocations_as_list=False, traits=True, all_classes=True, trees=True, mappings=True
)

#: Bytes of summaries that are written when no time is left.
_CUT_BYTES_MAX: Final = 1 << 22

#: The text of a gap for a uuid.
_UUID: Final = b'"%b"'

#: The node that is a root.
_ROOT: Final = 0

#: A value for each gap: of each candidate, or the same of all.
_Column = Sequence[Any]


def candidate_texts(
    snapshot: Snapshot,
    plan: Plan,
    order: Order,
    ranked: Ranked,
    budget: Budget,
    forms: Forms | None = None,
) -> list[bytes]:
    """The JSON of each candidate, in their order.

    It ends with the candidate with which the texts reach the budget's size; the budget counts the
    candidates. If its time ends, `CUT_MAX` of those that were found are written.

    Args:
        forms: those of earlier calls with the same snapshot, plan and order; gets the new ones.
    """
    forms = {} if forms is None else forms
    of_batches: dict[int, list[bytes]] = {}
    texts: list[bytes] = []
    size = 0
    for number, place in ranked.order:
        of_batch = of_batches.get(number)
        if of_batch is None:
            batch, scores = ranked.batches[number]
            form = _form_in(forms, snapshot, plan, order, batch)
            of_batch = of_batches[number] = form.texts(batch, scores)
        texts.append(of_batch[place])
        size += len(of_batch[place])
        budget.candidates += 1
        # Once in the list, and once in the answer.
        budget.take(2 * len(of_batch[place]))
        ended = (budget.is_spent() or budget.is_filled_by(size)) and budget.ended
        if ended and (ended != "time" or len(texts) >= CUT_MAX):
            break
    return texts


class Candidate(NamedTuple):
    """A candidate as it is shown, as values, and its JSON.

    Attributes:
        allocations: provider -> class -> amount.
        mappings: group -> the providers that serve it.
    """

    host: str
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]
    text: bytes


def candidates_of(
    snapshot: Snapshot, plan: Plan, order: Order, ranked: Ranked, forms: Forms | None = None
) -> list[Candidate]:
    """Candidates to claim, in their order; arguments as of `candidate_texts`."""
    forms = {} if forms is None else forms
    several = [
        _form_in(forms, snapshot, plan, order, batch).candidates(batch, scores)
        for batch, scores in ranked.batches
    ]
    return [several[number][place] for number, place in ranked.order]


def summaries(snapshot: Snapshot, plan: Plan, batches: Iterable[Batch], budget: Budget) -> bytes:
    """`provider_summaries` of some candidates, in the form of 1.39; as many as there is memory
    for, and as are written in no time if the budget has ended."""
    texts = SummaryTexts(snapshot, plan, _FORM)
    for batch in batches:
        texts.add(batch)
    parts: list[Part] = []
    size = 0
    for part in texts.parts():
        of_part = texts.long([part]).length_about()
        size += of_part
        if not budget.take(2 * of_part) or (budget.is_spent() and size > _CUT_BYTES_MAX):
            break
        parts.append(part)
    return b"".join((b"{", *texts.written(parts), b"}"))


#: The values of a gap for the candidates of a batch.
_Values = Callable[[Batch, "Scores | None"], _Column]


class Form(NamedTuple):
    """What the candidates of all batches with the same choices, in trees of one shape, look like.

    Values that are the same are one object.

    Attributes:
        text: with gaps, as for `%`.
        gaps: the values of each.
        providers: the gaps for uuids, each once.
        host, allocations, mappings: those of `Candidate`; an amount that may be split has a gap.
    """

    text: bytes
    gaps: tuple[_Values, ...]
    providers: tuple[_Values, ...]
    host: _Values
    allocations: Sequence[tuple[_Values, Sequence[tuple[str, int | _Values]]]]
    mappings: Sequence[tuple[str, Sequence[_Values]]]

    def texts(self, batch: Batch, scores: Scores | None) -> list[bytes]:
        """The texts of the candidates of such a batch."""
        return self._filled(self._columns(batch, scores))

    def candidates(self, batch: Batch, scores: Scores | None) -> list[Candidate]:
        """The candidates of such a batch."""
        columns = self._columns(batch, scores)
        uuids = {each: [uuid.decode() for uuid in columns[each]] for each in self.providers}
        return [
            Candidate(
                uuids[self.host][place],
                {
                    uuids[provider][place]: {
                        name: amount if isinstance(amount, int) else columns[amount][place]
                        for name, amount in amounts
                    }
                    for provider, amounts in self.allocations
                },
                {
                    name: [uuids[provider][place] for provider in providers]
                    for name, providers in self.mappings
                },
                text,
            )
            for place, text in enumerate(self._filled(columns))
        ]

    def _columns(self, batch: Batch, scores: Scores | None) -> dict[_Values, _Column]:
        return {values: values(batch, scores) for values in dict.fromkeys(self.gaps)}

    def _filled(self, columns: Mapping[_Values, _Column]) -> list[bytes]:
        return [self.text % each for each in zip(*map(columns.__getitem__, self.gaps), strict=True)]


#: The form of batches by what they have in common.
Forms = dict[Hashable, Form]


def _form_in(forms: Forms, snapshot: Snapshot, plan: Plan, order: Order, batch: Batch) -> Form:
    """The form of a batch, kept or made now."""
    key = batch.key
    form = forms.get(key)
    if form is None:
        form = forms[key] = _form_of(snapshot, plan, order, batch)
    return form


def _form_of(snapshot: Snapshot, plan: Plan, order: Order, batch: Batch) -> Form:
    names = snapshot.names.class_names
    providers: dict[int, _Values] = {
        choice: partial(_uuids, choice) for choice in dict.fromkeys(batch.all_choices)
    }
    host: _Values = partial(_host_uuids, snapshot)
    if batch.is_anchored:
        host = providers.setdefault(_ROOT, partial(_uuids, _ROOT))
    given: dict[int, list[tuple[str, int | _Values]]] = {}
    for (choice, class_id), amount in batch.given(plan).items():
        gap: _Values = partial(_amounts, plan, choice, class_id)
        values = amount if isinstance(amount, int) else gap
        given.setdefault(choice, []).append((names[class_id], values))
    allocations = [(providers[choice], amounts) for choice, amounts in given.items()]
    mappings = [
        (suffix, [providers[choice] for choice in choices])
        for suffix, choices in batch.serving(plan).items()
    ]
    pieces: list[bytes] = []
    gaps: list[_Values] = []
    for piece in _pieces(host, allocations, mappings, order):
        if isinstance(piece, bytes):
            pieces.append(piece)
        else:
            written, values = piece
            pieces.append(written)
            gaps.append(values)
    uuids = tuple(dict.fromkeys((host, *providers.values())))
    return Form(b"".join(pieces), tuple(gaps), uuids, host, allocations, mappings)


def _pieces(
    host: _Values,
    allocations: Iterable[tuple[_Values, Iterable[tuple[str, int | _Values]]]],
    mappings: Iterable[tuple[str, Iterable[_Values]]],
    order: Order,
) -> Iterator[bytes | tuple[bytes, _Values]]:
    """The text of a form: fixed parts, and gaps with their values."""
    yield b'{"host": '
    yield _UUID, host
    yield b', "allocations": {'
    for number, (provider, amounts) in enumerate(allocations):
        yield b", " if number else b""
        yield _UUID, provider
        yield b': {"resources": {'
        for place, (name, amount) in enumerate(amounts):
            yield b'%b"%b": ' % (b", " if place else b"", name.encode())
            if isinstance(amount, int):
                yield b"%d" % amount
            else:
                yield b"%d", amount
        yield b"}}"
    yield b'}, "mappings": {'
    for number, (suffix, providers) in enumerate(mappings):
        yield b'%b"%b": [' % (b", " if number else b"", suffix.encode())
        for place, provider in enumerate(providers):
            yield b", " if place else b""
            yield _UUID, provider
        yield b"]"
    yield b"}"
    if order.has_scores:
        yield from _score_pieces(order)
    yield b"}"


def _score_pieces(order: Order) -> Iterator[bytes | tuple[bytes, _Values]]:
    yield b', "score": {"total": '
    yield b"%a", _totals
    if order.by != "any":
        yield b', "%b": ' % order.by.encode()
        yield b"%a", _of_strategy
    yield b', "prefer": ['
    for number, preference in enumerate(order.prefer):
        yield b", " if number else b""
        yield b"%a", partial(_preferred, number, preference.weight)
    yield b"]}"


def _totals(_: Batch, scores: Scores | None) -> _Column:
    assert scores is not None, "the order has scores"
    totals: list[float] = scores.total.tolist()
    return totals


def _of_strategy(_: Batch, scores: Scores | None) -> _Column:
    assert scores is not None and scores.strategy is not None, "the order has a strategy"
    values: list[float] = scores.strategy.tolist()
    return values


def _preferred(number: int, weight: float, _: Batch, scores: Scores | None) -> _Column:
    """What a preference adds: its weight, or nothing."""
    assert scores is not None, "the order has scores"
    return [weight if each else 0 for each in scores.prefer[number].tolist()]


def _amounts(plan: Plan, choice: int, class_id: ClassId, batch: Batch, _: Scores | None) -> _Column:
    """What a choice gives of a class that may be split."""
    amounts = batch.given(plan)[choice, class_id]
    assert not isinstance(amounts, int), "it is part of a split"
    values: list[int] = amounts.tolist()
    return values


def _uuids(choice: int, batch: Batch, _: Scores | None) -> _Column:
    """The uuid of the provider of a choice, for each candidate."""
    trees = batch.trees
    if choice < trees.block.shape.size:
        texts: list[bytes] = trees.block.uuid_texts[choice].take(batch.rows).tolist()
        return texts
    return [
        trees.sharing_providers.text(each).tobytes().rstrip(b"\0")
        for each in serving_each(batch, choice)
    ]


def _host_uuids(snapshot: Snapshot, batch: Batch, _: Scores | None) -> _Column:
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
