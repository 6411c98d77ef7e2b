# SPDX-License-Identifier: Apache-2.0
"""From batches of candidates to the bytes of the answer: `allocation_requests`, and the entries of
`provider_summaries`.

Two candidates have the same *pattern* when the same of their demands share a provider. Their texts
then differ only in uuids, and every uuid has the same length: so there is one template for each
pattern.

The texts consist of uuids and names in `[A-Za-z0-9_-]`, so nothing needs escaping.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

import numpy as np
from msgspec import Struct, field

from berth.candidates.batch import Batch
from berth.candidates.conditions import Rows
from berth.candidates.plan import Plan
from berth.candidates.question import ResponseForm
from berth.index.block import UUID_LENGTH, Block
from berth.index.shape import Shape
from berth.index.snapshot import Snapshot
from berth.index.texts import (
    PIECE_BYTES,
    SEPARATOR,
    Column,
    Gap,
    Template,
    joined_length,
    joined_text,
    template_of,
    tree_template,
    tree_text,
    tree_texts,
    windows,
    without_padding,
)
from berth.model.budget import Budget
from berth.model.ids import ClassId

#: For each demand of the plan, the first demand that has the same provider.
Pattern = tuple[int, ...]

#: The text of a candidate and a separator; a gap is a demand, for the uuid of its provider.
CandidateTemplate = Template[int]

#: If batches have at least this many candidates on average, each is copied by itself.
LARGE_BATCH_MIN: Final = 16

_UUID: Final = b'"%b"'


def _pieces(
    plan: Plan, form: ResponseForm, class_names: Mapping[ClassId, str], pattern: Pattern
) -> Iterator[bytes | tuple[int, bytes]]:
    """The pieces of a template.

    Source: spec/allocation-candidates.md 7.
    """
    as_list = form.allocations_as_list
    before, between = (
        (b'{"resource_provider": {"uuid": ', b'}, "resources": {')
        if as_list
        else (b"", b': {"resources": {')
    )
    yield b'{"allocations": ' + (b"[" if as_list else b"{")
    for number, (provider, amounts) in enumerate(_amounts(plan, pattern).items()):
        yield SEPARATOR + before if number else before
        yield provider, _UUID
        resources = (f'"{class_names[class_id]}": {n}' for class_id, n in amounts.items())
        yield between + ", ".join(resources).encode() + b"}}"
    yield b"]" if as_list else b"}"
    if form.mappings:
        yield b', "mappings": {'
        for number, (suffix, providers) in enumerate(_mappings(plan, pattern).items()):
            yield (SEPARATOR if number else b"") + f'"{suffix}": ['.encode()
            for place, provider in enumerate(providers):
                yield SEPARATOR if place else b""
                yield provider, _UUID
            yield b"]"
        yield b"}"
    yield b"}" + SEPARATOR


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


class _Sheet(Struct, eq=False):
    """The candidates of one pattern in one block, or some of them where there are many.

    Attributes:
        row_bytes: the length of each text.
    """

    template: CandidateTemplate
    row_bytes: int
    batches: list[Batch] = field(default_factory=list)
    count: int = 0

    def text(self) -> bytes | bytearray:
        """The texts of all candidates."""
        template, batches = self.template, self.batches
        demands = dict.fromkeys(template.gaps)
        if len(batches) == 1:
            columns = {demand: _column(batches[0], demand) for demand in demands}
        else:
            columns = dict(_columns_of_many(batches, demands))
        return template.padded(columns, self.count)


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
        count = len(batch.positions)
        if sheet is None or sheet.count * sheet.row_bytes > PIECE_BYTES:
            sheet = self._sheets[key] = self._sheet(pattern)
        piece_count = PIECE_BYTES // sheet.row_bytes + 1
        if count > piece_count:
            for part in batch.split(piece_count):
                self.add(part)
            return
        sheet.batches.append(batch)
        start, end = sheet.count, sheet.count + count
        if self._order and self._order[-1][0] is sheet:
            _, start, _ = self._order.pop()
        self._order.append((sheet, start, end))
        sheet.count = end
        self.size += count * sheet.row_bytes

    def length(self) -> int:
        """The length of all `pieces` together, if all uuids have 36 characters."""
        return self.size - len(SEPARATOR)

    def pieces(self) -> Iterator[bytes | bytearray | memoryview]:
        """The texts of all candidates with separators between them; each piece is made when its
        turn comes, and dropped once it is written."""
        texts: dict[_Sheet, bytes | bytearray] = {}
        last = self._order[-1] if self._order else None
        for entry in self._order:
            sheet, start, end = entry
            text = texts.pop(sheet, None) if texts else None
            if text is None:
                text = sheet.text()
            if end < sheet.count:
                texts[sheet] = text
            piece: bytes | bytearray | memoryview = text
            if entry is last or end - start < sheet.count:
                shorter = len(SEPARATOR) if entry is last else 0
                piece = memoryview(text)[start * sheet.row_bytes : end * sheet.row_bytes - shorter]
            if b"\0" in text:
                # Padding: an old database may have any text of up to 36 characters as a uuid.
                piece = without_padding(piece)
            yield piece

    def _sheet(self, pattern: Pattern) -> _Sheet:
        key = self._plan, self._form, pattern
        template: CandidateTemplate | None = self._memory.get(key)
        if template is None:
            template = Template.of(_pieces(self._plan, self._form, self._class_names, pattern))
            self._memory.keep(key, template, template.size)
        return _Sheet(template, template.literal_bytes + UUID_LENGTH * len(template.gaps))


def _column(batch: Batch, demand: int) -> Column:
    """The uuids of the providers of a demand."""
    trees, choice = batch.trees, batch.choices[demand]
    place = choice - trees.block.shape.size
    if place < 0:
        uuids: Column = trees.block.uuid_elements[choice].take(batch.rows)
        return uuids
    if trees.served_by is None:
        uuid: bytes = trees.sharing_providers.text(trees.serving[place]).tobytes()
        return uuid
    return trees.sharing_providers.texts(trees.served_by[place, batch.positions])


def _columns_of_many(
    batches: Sequence[Batch], demands: Iterable[int]
) -> Iterator[tuple[int, Column]]:
    """`_column` of several batches of one block, one behind the other."""
    block = batches[0].trees.block
    size = block.shape.size
    uuids = block.uuid_elements.ravel()
    rows = np.concatenate([batch.rows for batch in batches])
    counts = [len(batch.positions) for batch in batches]
    one_by_one = len(rows) >= LARGE_BATCH_MIN * len(batches)
    for demand in demands:
        choices = [batch.choices[demand] for batch in batches]
        if one_by_one:
            column = np.empty(len(rows), uuids.dtype)
        else:
            # Those of other trees are filled in afterwards.
            nodes = np.repeat([choice if choice < size else 0 for choice in choices], counts)
            column = uuids.take(nodes * block.rows + rows)
        if one_by_one or max(choices) >= size:
            end = 0
            for batch, count in zip(batches, counts, strict=True):
                start, end = end, end + count
                if one_by_one or batch.choices[demand] >= size:
                    column[start:end] = _column(batch, demand)
        yield demand, column


#: A block, some of its rows, and the node to describe, or None for whole trees.
Part = tuple[Block, int | None, Rows]


class SummaryTexts:
    """Collects the providers of candidates and renders their summaries."""

    def __init__(self, snapshot: Snapshot, plan: Plan, form: ResponseForm) -> None:
        self._snapshot = snapshot
        self._form = form
        self._class_names: Mapping[ClassId, str] = snapshot.names.class_names
        if not form.all_classes:
            requested = {class_id for demand in plan.demands for class_id, _ in demand.amounts}
            self._class_names = {number: self._class_names[number] for number in requested}
        self._giving = plan.giving
        #: block_id -> rows of whole trees; or, below 1.29, (block_id, node) -> rows.
        self._trees: dict[int, list[Rows]] = {}
        self._providers: dict[tuple[int, int], list[Rows]] = {}
        self._templates: dict[tuple[Shape, int], Template[Gap]] = {}

    def add(self, batch: Batch) -> None:
        """Note the providers of some candidates that give resources."""
        trees = batch.trees
        size = trees.block.shape.size
        is_tree_noted = False
        choices = {batch.choices[number] for number in self._giving}
        for part in batch.parts:
            choices.update(part.choices)
        for choice in choices:
            if choice >= size:
                self._add_foreign(batch, choice - size)
            elif not self._form.trees:
                self._providers.setdefault((trees.block_id, choice), []).append(batch.rows)
            elif not is_tree_noted:
                is_tree_noted = True
                self._add_trees(trees.block_id, batch.rows)

    def parts(self) -> list[Part]:
        """All that there is to write, each provider once."""
        parts: list[Part] = []
        for block_id, rows in self._trees.items():
            block = self._snapshot.block(block_id)
            parts.append((block, None, _distinct(rows, block)))
        for (block_id, node), rows in self._providers.items():
            block = self._snapshot.block(block_id)
            parts.append((block, node, _distinct(rows, block)))
        return parts

    def written(self, parts: Iterable[Part]) -> list[bytes]:
        """The entries of `provider_summaries` with separators between them, to join."""
        texts: list[bytes] = []
        for block, node, rows in parts:
            if node is None:
                texts += tree_texts(self._snapshot, block, rows)
            else:
                texts.append(joined_text(self._template(block, node), block, rows))
        if texts:
            texts[0] = texts[0].removeprefix(SEPARATOR)
        return texts

    def long(self, parts: Iterable[Part]) -> LongSummaries:
        """The same for a long answer."""
        return LongSummaries(
            self._snapshot,
            [(block, node, rows, self._template(block, node)) for block, node, rows in parts],
        )

    def _template(self, block: Block, node: int | None) -> Template[Gap]:
        if node is None:
            return tree_template(self._snapshot, block.shape)
        key = block.shape, node
        template = self._templates.get(key)
        if template is None:
            traits = self._snapshot.names.trait_names if self._form.traits else None
            template = template_of(block.shape, (node,), self._class_names, traits, places=False)
            self._templates[key] = template
        return template

    def _add_trees(self, block_id: int, rows: Rows) -> None:
        noted = self._trees.setdefault(block_id, [])
        # A tree that is searched alone has one array for all of its candidates.
        if not noted or noted[-1] is not rows:
            noted.append(rows)

    def _add_foreign(self, batch: Batch, place: int) -> None:
        trees = batch.trees
        if trees.served_by is None:
            foreign = [trees.serving[place]]
        else:
            met = np.zeros(len(trees.sharing_providers), dtype=np.bool_)
            met[trees.served_by[place, batch.positions]] = True
            foreign = [trees.sharing_providers[number] for number in met.nonzero()[0].tolist()]
        rows: dict[tuple[int, int], set[int]] = {}
        for each in foreign:
            block_id, row, node = each.location
            rows.setdefault((block_id, 0 if self._form.trees else node), set()).add(row)
        for (block_id, node), several in rows.items():
            part = np.array(sorted(several), dtype=np.int64)
            if self._form.trees:
                self._trees.setdefault(block_id, []).append(part)
            else:
                self._providers.setdefault((block_id, node), []).append(part)


class LongSummaries:
    """The entries of `provider_summaries` of a long answer, made piece by piece."""

    def __init__(
        self, snapshot: Snapshot, parts: Sequence[tuple[Block, int | None, Rows, Template[Gap]]]
    ) -> None:
        self._snapshot = snapshot
        self._parts = parts

    def length_about(self) -> int:
        """About how long they are, at little cost."""
        return sum(len(rows) * len(template.form) for _, _, rows, template in self._parts)

    def length(self) -> int:
        """How long they are, to the byte, if all uuids have 36 characters."""
        return -len(SEPARATOR) + sum(
            joined_length(template, block, rows) for block, _, rows, template in self._parts
        )

    def pieces(self) -> Iterator[bytes]:
        """The entries with separators between them, each piece made when its turn comes."""
        skipped = len(SEPARATOR)
        for block, node, rows, template in self._parts:
            for window in windows(template, rows):
                if node is None:
                    text = tree_text(self._snapshot, block, window)
                else:
                    text = joined_text(template, block, window)
                yield text[skipped:]
                skipped = 0


def _distinct(parts: Sequence[Rows], block: Block) -> Rows:
    """The rows of several arrays, each once; those of one array are distinct."""
    if len(parts) == 1:
        return parts[0]
    # PERF bench, nested: marking them takes a twentieth of the time of `np.unique`.
    marked = np.zeros(block.rows, dtype=np.bool_)
    marked[np.concatenate(parts)] = True
    return marked.nonzero()[0]


NO_CANDIDATES: Final = b'{"allocation_requests": [], "provider_summaries": {}}'


#: A longer answer is made while it is sent, piece by piece.
WHOLE_BYTES_MAX: Final = 8 << 20
#: With this much of candidates, the length of the summaries is worth an estimate.
ESTIMATED_FROM: Final = 1 << 16

_BEGIN: Final = b'{"allocation_requests": ['
_BETWEEN: Final = b'], "provider_summaries": {'
_END: Final = b"}}"


class LongAnswer:
    """The body of a long answer: its length is known, and its pieces are made as they are read, so
    that it never takes the memory of more than a few.

    What it is made from never changes, so it may be read more than once.
    """

    def __init__(
        self, snapshot: Snapshot, candidates: CandidateTexts, summaries: LongSummaries
    ) -> None:
        self._candidates = candidates
        self._summaries = summaries
        if snapshot.has_short_uuids:
            self._length = sum(map(len, self))
        else:
            texts = candidates.length() + summaries.length()
            self._length = len(_BEGIN) + len(_BETWEEN) + len(_END) + texts

    def __len__(self) -> int:
        """How many bytes it has."""
        return self._length

    def __bytes__(self) -> bytes:
        """All of it."""
        return b"".join(self)

    def __iter__(self) -> Iterator[bytes]:
        """Its pieces, each of about `PIECE_BYTES`."""
        waiting: list[bytes | bytearray | memoryview] = []
        size = 0
        for piece in chain(
            (_BEGIN,), self._candidates.pieces(), (_BETWEEN,), self._summaries.pieces(), (_END,)
        ):
            waiting.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                yield b"".join(waiting)
                waiting.clear()
                size = 0
        yield b"".join(waiting)


def render_answer(
    snapshot: Snapshot,
    plan: Plan,
    form: ResponseForm,
    batches: Iterable[Batch],
    budget: Budget,
) -> bytes | LongAnswer:
    """The body of the answer: `allocation_requests` and `provider_summaries` as UTF-8 JSON.

    It ends with the candidate with which the answer reaches the budget's size. The budget counts
    the candidates.

    Source: spec/allocation-candidates.md 7.
    """
    candidates = CandidateTexts(plan, form, snapshot)
    summaries = SummaryTexts(snapshot, plan, form)
    for batch in batches:
        candidates.add(batch)
        summaries.add(batch)
        budget.candidates += len(batch.positions)
        if budget.is_filled_by(candidates.size):
            break
    parts = summaries.parts()
    if candidates.size >= ESTIMATED_FROM:
        long = summaries.long(parts)
        if candidates.size + long.length_about() > WHOLE_BYTES_MAX:
            return LongAnswer(snapshot, candidates, long)
    # PERF bench, nested: one join, since an answer may take megabytes and each copy a millisecond.
    return b"".join((_BEGIN, *candidates.pieces(), _BETWEEN, *summaries.written(parts), _END))
