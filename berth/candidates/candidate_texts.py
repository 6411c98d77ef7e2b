# SPDX-License-Identifier: Apache-2.0
"""The texts of candidates: `allocation_requests`.

Two candidates have the same *pattern* when the same of their demands share a provider. Their texts
then differ only in uuids, and every uuid has the same length. So each pattern's text is made once,
with gaps for the uuids. A few candidates are formatted one by one; for many, the text is repeated
and the uuids are copied into the gaps column by column.

The texts consist of uuids and names in `[A-Za-z0-9_-]`, so nothing needs escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from berth.candidates.batch import Batch
from berth.candidates.plan import Plan
from berth.candidates.request import ResponseForm
from berth.candidates.sharing import Texts
from berth.index.block import UUID_LENGTH
from berth.index.snapshot import Snapshot
from berth.index.text_columns import PIECE_BYTES, without_padding
from berth.model.ids import ClassId

#: For each demand of the plan, the first demand that has the same provider.
Pattern = tuple[int, ...]

#: What a gap in a template takes beside the text.
PLACE_BYTES: Final = 512

_SEPARATOR: Final = b", "
#: Fills a gap until a uuid is copied into it.
_BLANK: Final = b"-" * UUID_LENGTH

#: Up to this many candidates of a pattern are formatted one by one.
FEW_MAX: Final = 24
#: If batches have at least this many candidates on average, each is copied by itself.
LARGE_BATCH_MIN: Final = 16


@dataclass(frozen=True, slots=True)
class Template:
    """The text of a candidate and a separator, with gaps for uuids.

    Attributes:
        places: the array type of the text with one field for each place.
        fields: demand -> the fields for the uuid of its provider.
        to_format: the text again, to be formatted with the uuids of `demands`.
        piece_count: how many candidates make a piece of a long answer.
    """

    text: bytes
    places: np.dtype[np.void]
    fields: Mapping[int, tuple[str, ...]]
    to_format: bytes
    demands: tuple[int, ...]
    piece_count: int

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return 2 * len(self.text) + PLACE_BYTES * (1 + len(self.demands))


def template_of(
    plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str], pattern: Pattern
) -> Template:
    """The template of a pattern.

    Source: spec/allocation-candidates.md 7.
    """
    text, to_format = bytearray(), bytearray()
    demands: list[int] = []
    offsets: dict[int, list[int]] = {}
    for piece in _pieces(plan, form, class_names, pattern):
        if isinstance(piece, int):
            offsets.setdefault(piece, []).append(len(text))
            text += _BLANK
            to_format += b"%b"
            demands.append(piece)
        else:
            text += piece.encode()
            to_format += piece.encode()
    text += _SEPARATOR
    to_format += _SEPARATOR
    names = {demand: tuple(f"u{offset}" for offset in each) for demand, each in offsets.items()}
    flat = [offset for each in offsets.values() for offset in each]
    places = np.dtype(
        {
            "names": [f"u{offset}" for offset in flat],
            "formats": [f"V{UUID_LENGTH}"] * len(flat),
            "offsets": flat,
            "itemsize": len(text),
        }
    )
    count = PIECE_BYTES // len(text) + 1
    return Template(bytes(text), places, names, bytes(to_format), tuple(demands), count)


def _pieces(
    plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str], pattern: Pattern
) -> Iterator[str | int]:
    """The text of a candidate; a number stands for the uuid of the provider of that demand."""
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
    for demand, provider in zip(plan.demands, pattern, strict=True):
        for class_id, amount in demand.amounts:
            given = amounts.setdefault(provider, {})
            given[class_id] = given.get(class_id, 0) + amount
    return amounts


def _mappings(plan: Plan, pattern: Pattern) -> dict[str, dict[int, None]]:
    """suffix -> the providers that serve it, each once."""
    mappings: dict[str, dict[int, None]] = {}
    for demand, provider in zip(plan.demands, pattern, strict=True):
        mappings.setdefault(demand.suffix, {})[provider] = None
    return mappings


@dataclass(slots=True, eq=False)
class _Sheet:
    """The candidates of one pattern in one block, or some of them where there are many."""

    template: Template
    batches: list[Batch] = field(default_factory=list)
    count: int = 0


class CandidateTexts:
    """Collects candidates and renders them in the order in which they were added."""

    def __init__(self, plan: Plan, form: ResponseForm, snapshot: Snapshot) -> None:
        self._plan = plan
        self._form = form
        self._class_names = snapshot.names.class_names
        self._memory = snapshot.memory
        self._sheets: dict[tuple[Pattern, int], _Sheet] = {}
        #: (sheet, start index, end index) of its candidates, in the order of the answer.
        self._order: list[tuple[_Sheet, int, int]] = []
        #: The total length of all texts.
        self.size = 0

    def add(self, batch: Batch) -> None:
        """Add the candidates of a batch."""
        pattern = tuple(map(batch.choices.index, batch.choices))
        key = pattern, batch.trees.block_id
        sheet = self._sheets.get(key)
        if sheet is None or sheet.count >= sheet.template.piece_count:
            sheet = self._sheets[key] = _Sheet(self._template(pattern))
        template = sheet.template
        count = len(batch.positions)
        if count > template.piece_count:
            for part in batch.split(template.piece_count):
                self.add(part)
            return
        sheet.batches.append(batch)
        start, end = sheet.count, sheet.count + count
        if self._order and self._order[-1][0] is sheet:
            _, start, _ = self._order.pop()
        self._order.append((sheet, start, end))
        sheet.count = end
        self.size += count * len(template.text)

    def length(self) -> int:
        """The length of all `pieces` together, if all uuids have 36 characters."""
        return self.size - len(_SEPARATOR)

    def pieces(self) -> Iterator[bytes | bytearray | memoryview]:
        """The texts of all candidates with separators between them; each piece is made when its
        turn comes, and dropped once it is written."""
        texts: dict[_Sheet, bytes | bytearray] = {}
        last = self._order[-1] if self._order else None
        for entry in self._order:
            sheet, start, end = entry
            text = texts.pop(sheet, None) if texts else None
            if text is None:
                text = _text(sheet)
            if end < sheet.count:
                texts[sheet] = text
            piece: bytes | bytearray | memoryview = text
            if entry is last or end - start < sheet.count:
                length = len(sheet.template.text)
                shorter = len(_SEPARATOR) if entry is last else 0
                piece = memoryview(text)[start * length : end * length - shorter]
            if b"\0" in text:
                # Padding: an old database may have any text of up to 36 characters as a uuid.
                piece = without_padding(piece)
            yield piece

    def _template(self, pattern: Pattern) -> Template:
        key = self._plan, self._form, pattern
        template: Template | None = self._memory.get(key)
        if template is None:
            template = template_of(self._plan, self._form, self._class_names, pattern)
            self._memory.keep(key, template, template.size)
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
    for demand, texts in _columns(batch, template.fields):
        columns[demand] = (
            texts.tolist()
            if isinstance(texts, np.ndarray)
            else [texts.tobytes()] * len(batch.positions)
        )
    form = template.to_format
    return [form % uuids for uuids in zip(*map(columns.__getitem__, template.demands), strict=True)]


def _fill(
    places: NDArray[np.void], template: Template, columns: Iterable[tuple[int, Texts | np.void]]
) -> None:
    for demand, uuids in columns:
        for name in template.fields[demand]:
            places[name] = uuids


def _columns(batch: Batch, demands: Iterable[int]) -> list[tuple[int, Texts | np.void]]:
    """For each of some demands the uuids of its providers: one for each candidate, or one for
    all."""
    block, rows = batch.trees.block, batch.rows
    uuids, size = block.uuid_elements, block.shape.size
    columns: list[tuple[int, Texts | np.void]] = []
    for demand in demands:
        choice = batch.choices[demand]
        local = choice < size
        columns.append(
            (demand, uuids[choice].take(rows) if local else _foreign(batch, choice - size))
        )
    return columns


def _columns_of_many(
    batches: Sequence[Batch], demands: Iterable[int]
) -> Iterator[tuple[int, Texts | np.void]]:
    """`_columns` of several batches of one block, one behind the other."""
    block = batches[0].trees.block
    uuids, size = block.uuid_elements, block.shape.size
    rows = np.concatenate([batch.rows for batch in batches])
    counts = [len(batch.positions) for batch in batches]
    table = np.repeat(np.array([batch.choices for batch in batches]), counts, axis=0)
    any_foreign = bool((table >= size).any())
    for demand in demands:
        choices = table[:, demand]
        if not any_foreign:
            yield demand, uuids[choices, rows]
            continue
        column = uuids[np.minimum(choices, size - 1), rows]
        start = 0
        for batch, count in zip(batches, counts, strict=True):
            if batch.choices[demand] >= size:
                column[start : start + count] = _foreign(batch, batch.choices[demand] - size)
            start += count
        yield demand, column


def _foreign(batch: Batch, place: int) -> Texts | np.void:
    """The uuids of the sharing providers at a place: one for each candidate, or one for all."""
    trees = batch.trees
    if trees.served_by is None:
        return trees.sharing_providers.text(trees.serving[place])
    return trees.sharing_providers.texts(trees.served_by[place, batch.positions])
