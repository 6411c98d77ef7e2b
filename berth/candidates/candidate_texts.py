# SPDX-License-Identifier: Apache-2.0
"""The texts of candidates: `allocation_requests`.

Candidates whose slots meet on providers in the same *pattern* have texts that differ in uuids only,
and a uuid has always the same length. So the text of a pattern is made once, with places for the
uuids, repeated for all candidates of that pattern in a block, and the uuids are copied into it,
column by column.

All that is put together here is made of uuids and of names in `[A-Za-z0-9_-]`, so nothing needs
escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from berth.candidates.batch import Batch
from berth.candidates.foreign import Texts, uuid_texts
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.index.block import UUID_LENGTH
from berth.model.ids import ClassId

#: For each slot of the plan, the first slot that has the same provider.
Pattern = tuple[int, ...]

#: Templates kept with a plan; one more, and all are forgotten.
TEMPLATES_MAX: Final = 256

_SEPARATOR: Final = b", "
#: Stands where a uuid will be copied to.
_BLANK: Final = b"-" * UUID_LENGTH


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a candidate, a separator behind it, with places for uuids.

    Attributes:
        places: the array type of the text with one field for each place.
        fields: slot -> the fields for the uuid of its provider.
    """

    text: bytes
    places: np.dtype[np.void]
    fields: Mapping[int, tuple[str, ...]]


def template_of(
    plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str], pattern: Pattern
) -> Template:
    """The template of a pattern.

    Source: spec/allocation-candidates.md 7.
    """
    text = bytearray()
    offsets: dict[int, list[int]] = {}
    for piece in _pieces(plan, form, class_names, pattern):
        if isinstance(piece, int):
            offsets.setdefault(piece, []).append(len(text))
            text += _BLANK
        else:
            text += piece.encode()
    text += _SEPARATOR
    names = {slot: tuple(f"u{offset}" for offset in each) for slot, each in offsets.items()}
    flat = [offset for each in offsets.values() for offset in each]
    places = np.dtype(
        {
            "names": [f"u{offset}" for offset in flat],
            "formats": [f"V{UUID_LENGTH}"] * len(flat),
            "offsets": flat,
            "itemsize": len(text),
        }
    )
    return Template(bytes(text), places, names)


def _pieces(
    plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str], pattern: Pattern
) -> Iterator[str | int]:
    """The text of a candidate; a number stands for the uuid of the provider of that slot."""
    as_list = form.allocations_as_list
    before, between, after = (
        ('{"resource_provider": {"uuid": "', '"}, "resources": {', "}}")
        if as_list
        else ('"', '": {"resources": {', "}}")
    )
    yield '{"allocations": ' + ("[" if as_list else "{")
    for number, (provider, amounts) in enumerate(_amounts(plan, pattern).items()):
        resources = (f'"{class_names[class_id]}": {n}' for class_id, n in amounts.items())
        yield ", " + before if number else before
        yield provider
        yield between + ", ".join(resources) + after
    yield "]" if as_list else "}"
    if form.mappings:
        yield ', "mappings": {'
        for number, (suffix, providers) in enumerate(_mappings(plan, pattern).items()):
            yield (", " if number else "") + f'"{suffix}": ['
            for place, provider in enumerate(providers):
                yield ', "' if place else '"'
                yield provider
                yield '"'
            yield "]"
        yield "}"
    yield "}"


def _amounts(plan: Plan, pattern: Pattern) -> dict[int, dict[ClassId, int]]:
    """provider -> class -> what the groups take of it together; providers that give nothing are
    left out."""
    amounts: dict[int, dict[ClassId, int]] = {}
    for slot, provider in zip(plan.slots, pattern, strict=True):
        for class_id, amount in slot.amounts:
            given = amounts.setdefault(provider, {})
            given[class_id] = given.get(class_id, 0) + amount
    return amounts


def _mappings(plan: Plan, pattern: Pattern) -> dict[str, dict[int, None]]:
    """suffix -> the providers that serve it, each once."""
    mappings: dict[str, dict[int, None]] = {}
    for slot, provider in zip(plan.slots, pattern, strict=True):
        mappings.setdefault(slot.suffix, {})[provider] = None
    return mappings


@dataclass(slots=True)
class _Sheet:
    """The candidates of one pattern in one block."""

    template: Template
    batches: list[Batch] = field(default_factory=list)
    count: int = 0


class CandidateTexts:
    """Collects candidates, and writes them in the order in which they came."""

    def __init__(self, plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str]) -> None:
        self._plan = plan
        self._form = form
        self._class_names = class_names
        self._sheets: dict[tuple[Pattern, int], _Sheet] = {}
        #: (sheet, from its how-many-eth candidate, up to which), in the order of the answer.
        self._order: list[tuple[_Sheet, int, int]] = []
        #: The length of all texts together.
        self.size = 0

    def add(self, batch: Batch) -> None:
        """Take more candidates."""
        pattern = tuple(map(batch.choices.index, batch.choices))
        sheet = self._sheets.get((pattern, batch.trees.slot))
        if sheet is None:
            sheet = self._sheets[pattern, batch.trees.slot] = _Sheet(self._template(pattern))
        count = len(batch.positions)
        sheet.batches.append(batch)
        self._order.append((sheet, sheet.count, sheet.count + count))
        sheet.count += count
        self.size += count * len(sheet.template.text)

    def written(self) -> list[bytearray]:
        """The texts of all candidates, with separators between them, in pieces to be joined."""
        if not self._order:
            return []
        if len(self._sheets) == 1:
            (sheet,) = self._sheets.values()
            pieces = [_filled(sheet)]
        else:
            texts = {id(sheet): _filled(sheet) for sheet in self._sheets.values()}
            pieces = []
            for sheet, start, end in self._order:
                length = len(sheet.template.text)
                pieces.append(texts[id(sheet)][start * length : end * length])
        del pieces[-1][-len(_SEPARATOR) :]
        return [_without_gaps(piece) for piece in pieces]

    def _template(self, pattern: Pattern) -> Template:
        templates = self._plan.templates
        template = templates.get((self._form, pattern))
        if template is None:
            if len(templates) >= TEMPLATES_MAX:
                templates.clear()
            template = template_of(self._plan, self._form, self._class_names, pattern)
            templates[self._form, pattern] = template
        return template


def _filled(sheet: _Sheet) -> bytearray:
    """The texts of all candidates of a sheet."""
    template = sheet.template
    # PERF bench, flat: filling one buffer by columns is twenty times as fast as formatting texts.
    text = bytearray(template.text) * sheet.count
    places = np.frombuffer(text, dtype=template.places)
    for slot, uuids in _columns(sheet.batches, template.fields):
        for name in template.fields[slot]:
            places[name] = uuids
    return text


def _columns(batches: list[Batch], slots: Iterable[int]) -> Iterator[tuple[int, Texts | np.void]]:
    """For each of some slots the uuids of its providers, candidate by candidate."""
    trees = batches[0].trees
    uuids, size = uuid_texts(trees.block), trees.block.shape.size
    if len(batches) == 1:
        batch = batches[0]
        rows = batch.rows
        for slot in slots:
            choice = batch.choices[slot]
            yield (
                slot,
                (uuids[choice].take(rows) if choice < size else _foreign(batch, choice - size)),
            )
        return
    rows = np.concatenate([batch.rows for batch in batches])
    counts = [len(batch.positions) for batch in batches]
    table = np.repeat(np.array([batch.choices for batch in batches]), counts, axis=0)
    any_foreign = bool((table >= size).any())
    for slot in slots:
        choices = table[:, slot]
        if not any_foreign:
            yield slot, uuids[choices, rows]
            continue
        column = uuids[np.minimum(choices, size - 1), rows]
        start = 0
        for batch, count in zip(batches, counts, strict=True):
            if batch.choices[slot] >= size:
                column[start : start + count] = _foreign(batch, batch.choices[slot] - size)
            start += count
        yield slot, column


def _foreign(batch: Batch, place: int) -> Texts | np.void:
    """The uuids of the sharing providers at a place: one for each candidate, or one for all."""
    trees = batch.trees
    if trees.served_by is None:
        return trees.known.text(trees.foreign[place])
    return trees.known.texts(trees.served_by[place, batch.positions])


def _without_gaps(text: bytearray) -> bytearray:
    """A text without what fills up the uuids that are no uuids (an old database may have any name
    of up to 36 letters)."""
    return text.replace(b"\0", b"") if b"\0" in text else text
