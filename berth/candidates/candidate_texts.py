# SPDX-License-Identifier: Apache-2.0
"""The texts of candidates: `allocation_requests`.

Candidates whose slots meet on providers in the same *pattern* have texts that differ in uuids only,
and a uuid has always the same length. So the text of a pattern is made once, with places for the
uuids. A few candidates are formatted one by one; for more, the text is repeated for all of that
pattern in a block, and the uuids are copied into it, column by column.

All that is put together here is made of uuids and of names in `[A-Za-z0-9_-]`, so nothing needs
escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.candidates.batch import Batch
from berth.candidates.foreign import Texts, uuid_texts
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.index.block import UUID_LENGTH
from berth.index.snapshot import Snapshot
from berth.model.ids import ClassId

#: For each slot of the plan, the first slot that has the same provider.
Pattern = tuple[int, ...]

#: Templates kept with a plan; one more, and all are forgotten.
TEMPLATES_MAX: Final = 256
#: What a place in a template takes beside the text.
PLACE_BYTES: Final = 512

_SEPARATOR: Final = b", "
#: Stands where a uuid will be copied to.
_BLANK: Final = b"-" * UUID_LENGTH

#: Up to so many candidates of a pattern are formatted one by one.
FEW_MAX: Final = 24
#: From so many candidates to a batch on, on average, each batch is copied by itself.
LARGE_BATCH_MIN: Final = 16


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a candidate, a separator behind it, with places for uuids.

    Attributes:
        places: the array type of the text with one field for each place.
        fields: slot -> the fields for the uuid of its provider.
        to_format: the text again, to be formatted with the uuids of `slots`.
    """

    text: bytes
    places: np.dtype[np.void]
    fields: Mapping[int, tuple[str, ...]]
    to_format: bytes
    slots: tuple[int, ...]

    @property
    def size(self) -> int:
        """What it takes, in bytes."""
        return 2 * len(self.text) + PLACE_BYTES * (1 + len(self.slots))


def template_of(
    plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str], pattern: Pattern
) -> Template:
    """The template of a pattern.

    Source: spec/allocation-candidates.md 7.
    """
    text, to_format = bytearray(), bytearray()
    slots: list[int] = []
    offsets: dict[int, list[int]] = {}
    for piece in _pieces(plan, form, class_names, pattern):
        if isinstance(piece, int):
            offsets.setdefault(piece, []).append(len(text))
            text += _BLANK
            to_format += b"%b"
            slots.append(piece)
        else:
            text += piece.encode()
            to_format += piece.encode()
    text += _SEPARATOR
    to_format += _SEPARATOR
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
    return Template(bytes(text), places, names, bytes(to_format), tuple(slots))


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

    def __init__(self, plan: Plan, form: ResponseForm, snapshot: Snapshot) -> None:
        self._plan = plan
        self._form = form
        self._class_names = snapshot.names.class_names
        self._allowance = snapshot.allowance
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
        start, end = sheet.count, sheet.count + count
        if self._order and self._order[-1][0] is sheet:
            _, start, _ = self._order.pop()
        self._order.append((sheet, start, end))
        sheet.count = end
        self.size += count * len(sheet.template.text)

    def written(self) -> Sequence[bytes | bytearray | memoryview]:
        """The texts of all candidates, with separators between them, in pieces to be joined."""
        if not self._order:
            return []
        texts = {id(sheet): _text(sheet) for sheet in self._sheets.values()}
        pieces: list[bytes | bytearray | memoryview] = []
        for sheet, start, end in self._order:
            text = texts[id(sheet)]
            length = len(sheet.template.text)
            is_all = end - start == sheet.count
            pieces.append(text if is_all else memoryview(text)[start * length : end * length])
        pieces[-1] = memoryview(pieces[-1])[: -len(_SEPARATOR)]
        for text in texts.values():
            if b"\0" in text:
                # What fills up the uuids that are no uuids: an old database may have any name of up
                # to 36 letters.
                return [bytes(piece).replace(b"\0", b"") for piece in pieces]
        return pieces

    def _template(self, pattern: Pattern) -> Template:
        templates = self._plan.templates
        template = templates.get((self._form, pattern))
        if template is None:
            if len(templates) >= TEMPLATES_MAX:
                templates.clear()
            template = template_of(self._plan, self._form, self._class_names, pattern)
            if self._allowance.grow(template.size):
                templates[self._form, pattern] = template
        return template


def _text(sheet: _Sheet) -> bytes | bytearray:
    """The texts of all candidates of a sheet, a separator behind each."""
    # PERF bench, flat: filling one buffer by columns is ten times as fast as formatting texts, but
    # begins with several microseconds of preparation.
    if sheet.count <= FEW_MAX:
        return b"".join([text for batch in sheet.batches for text in _formatted(sheet, batch)])
    text = bytearray(sheet.template.text) * sheet.count
    places = np.frombuffer(text, dtype=sheet.template.places)
    if sheet.count >= LARGE_BATCH_MIN * len(sheet.batches):
        end = 0
        for batch in sheet.batches:
            start, end = end, end + len(batch.positions)
            _fill(places[start:end], sheet.template, _columns(batch, sheet.template.fields))
    else:
        _fill(places, sheet.template, _columns_of_many(sheet.batches, sheet.template.fields))
    return text


def _formatted(sheet: _Sheet, batch: Batch) -> list[bytes]:
    """The texts of the candidates of a batch, one by one."""
    template = sheet.template
    columns: dict[int, list[bytes]] = {}
    for slot, texts in _columns(batch, template.fields):
        columns[slot] = (
            texts.tolist()
            if isinstance(texts, np.ndarray)
            else [texts.tobytes()] * len(batch.positions)
        )
    form = template.to_format
    return [form % uuids for uuids in zip(*map(columns.__getitem__, template.slots), strict=True)]


def _fill(
    places: NDArray[np.void], template: Template, columns: Iterable[tuple[int, Texts | np.void]]
) -> None:
    for slot, uuids in columns:
        for name in template.fields[slot]:
            places[name] = uuids


def _columns(batch: Batch, slots: Iterable[int]) -> list[tuple[int, Texts | np.void]]:
    """For each of some slots the uuids of its providers: one for each candidate, or one for
    all."""
    block, rows = batch.trees.block, batch.rows
    uuids, size = uuid_texts(block), block.shape.size
    columns: list[tuple[int, Texts | np.void]] = []
    for slot in slots:
        choice = batch.choices[slot]
        local = choice < size
        columns.append(
            (slot, uuids[choice].take(rows) if local else _foreign(batch, choice - size))
        )
    return columns


def _columns_of_many(
    batches: Sequence[Batch], slots: Iterable[int]
) -> Iterator[tuple[int, Texts | np.void]]:
    """`_columns` of several batches of one block, one behind the other."""
    block = batches[0].trees.block
    uuids, size = uuid_texts(block), block.shape.size
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
